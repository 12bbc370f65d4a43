; Functions, and variables of the script.
(function_definition name: (word) @name) @def.function
(program (variable_assignment name: (variable_name) @name) @def.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @def.variable)

(command name: (command_name (word) @_source) . argument: (_) @module (#any-of? @_source "source" ".")) @import

(comment) @head
