; Types, functions and initialisers. An extension gives its functions the name of its type.
(class_declaration name: (type_identifier) @name) @def.class
(class_declaration name: (user_type (type_identifier) @name)) @scope
(protocol_declaration name: (type_identifier) @name) @def.interface
(function_declaration name: (simple_identifier) @name) @def.function
(protocol_function_declaration name: (simple_identifier) @name) @def.method
(typealias_declaration name: (type_identifier) @name) @def.type

(import_declaration (identifier) @module) @import

(comment) @head
(multiline_comment) @head
