(call_expression . (identifier) @ref)
(call_expression . (navigation_expression (identifier) @ref .))
(user_type (identifier) @ref)
