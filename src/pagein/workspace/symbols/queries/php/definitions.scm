; Types, functions, methods and constants.
(namespace_definition name: (_) @name body: (_)) @def.namespace
(namespace_definition name: (_) @name !body) @namespace
(class_declaration name: (name) @name) @def.class
(interface_declaration name: (name) @name) @def.interface
(trait_declaration name: (name) @name) @def.trait
(enum_declaration name: (name) @name) @def.enum
(function_definition name: (name) @name) @def.function
(method_declaration name: (name) @name) @def.method
(property_declaration (property_element name: (variable_name (name) @name))) @def.property
(const_declaration (const_element (name) @name)) @def.constant

(namespace_use_declaration (namespace_use_clause . [(name) @module (qualified_name) @module])) @import

(comment) @head
