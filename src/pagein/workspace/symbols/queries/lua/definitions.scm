; Functions, with the table that they are put into, and variables of the file.
(function_declaration name: (_) @name) @def.function
(assignment_statement (variable_list name: (_) @name) (expression_list value: (function_definition))) @def.function
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @def.variable)

(comment) @head
