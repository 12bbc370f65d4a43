; Classes, objects, functions, and properties of files and types.
(class_declaration name: (identifier) @name (class_body) @body) @def.class
(class_declaration name: (identifier) @name) @def.class
(object_declaration name: (identifier) @name) @def.class
(function_declaration name: (identifier) @name (function_body) @body) @def.function
(function_declaration name: (identifier) @name) @def.function
(property_declaration (variable_declaration (identifier) @name)) @def.property
(type_alias type: (identifier) @name) @def.type

(import (qualified_identifier) @module) @import

(line_comment) @head
(block_comment) @head
