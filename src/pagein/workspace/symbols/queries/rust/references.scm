(call_expression function: (identifier) @ref)
(call_expression function: (field_expression field: (field_identifier) @ref))
(call_expression function: (scoped_identifier name: (identifier) @ref))
(call_expression function: (generic_function function: (identifier) @ref))
(macro_invocation macro: (identifier) @ref)
(type_identifier) @ref
