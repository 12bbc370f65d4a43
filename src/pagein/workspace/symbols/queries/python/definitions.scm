; Classes and functions; variables of modules and classes.
(class_definition name: (identifier) @name) @def.class
(function_definition name: (identifier) @name) @def.function
(type_alias_statement left: (type (identifier) @name)) @def.type
(expression_statement (assignment left: [(identifier) @name (pattern_list (identifier) @name)])) @def.variable
(expression_statement (assignment right: (assignment left: [(identifier) @name (pattern_list (identifier) @name)]))) @def.variable

(import_statement name: (dotted_name) @module) @import
(import_statement name: (aliased_import name: (dotted_name) @module)) @import
(import_from_statement module_name: (_) @module) @import
(future_import_statement) @import

(comment) @head
(decorator) @head
