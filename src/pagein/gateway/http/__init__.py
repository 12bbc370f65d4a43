"""HTTP parts of the gateway: access control, headers, codings, routes, upstream."""
