(call_expression function: (identifier) @ref)
(call_expression function: (field_expression field: (identifier) @ref))
(type_identifier) @ref
