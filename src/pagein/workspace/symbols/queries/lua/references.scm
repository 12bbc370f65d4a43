(function_call name: (identifier) @ref)
(function_call name: (dot_index_expression field: (identifier) @ref))
(function_call name: (method_index_expression method: (identifier) @ref))
