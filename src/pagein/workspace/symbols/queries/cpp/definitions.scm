; Functions with a body, classes, namespaces, types and macros. Declarations without a body are no definitions.
(class_specifier name: [(type_identifier) @name (qualified_identifier) @name (template_type name: (type_identifier) @name)] body: (_)) @def.class
(struct_specifier name: [(type_identifier) @name (qualified_identifier) @name (template_type name: (type_identifier) @name)] body: (_)) @def.struct
(union_specifier name: (type_identifier) @name body: (_)) @def.struct
(enum_specifier name: (type_identifier) @name body: (_)) @def.enum
(namespace_definition name: (_) @name) @def.namespace
(function_definition declarator: [
  (function_declarator declarator: (_) @name)
  (pointer_declarator declarator: (function_declarator declarator: (_) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))
  (reference_declarator (function_declarator declarator: (_) @name))]) @def.function
(function_definition declarator: (operator_cast) @name) @def.function
(type_definition declarator: (type_identifier) @name) @def.type
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @def.type
(alias_declaration name: (type_identifier) @name) @def.type
(concept_definition name: (identifier) @name) @def.type
(preproc_def name: (identifier) @name) @def.macro
(preproc_function_def name: (identifier) @name) @def.macro
(translation_unit (declaration declarator: (init_declarator declarator: [
  (identifier) @name
  (pointer_declarator declarator: (identifier) @name)
  (array_declarator declarator: (identifier) @name)])) @def.variable)
(namespace_definition body: (declaration_list (declaration declarator: (init_declarator declarator: (identifier) @name)) @def.variable))

(preproc_include path: (_) @module) @import

(comment) @head
(template_declaration parameters: (_) @head.end) @head
