"""HTTP as the gateway needs it: access, headers, codings, routes, the upstream."""
