(call_expression . (simple_identifier) @ref)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @ref)))
(user_type (type_identifier) @ref)
