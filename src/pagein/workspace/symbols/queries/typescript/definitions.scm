; Classes, functions, also those bound to a name, types, and variables of modules and namespaces.
(class_declaration name: (type_identifier) @name) @def.class
(abstract_class_declaration name: (type_identifier) @name) @def.class
(lexical_declaration (variable_declarator name: (identifier) @name value: (class body: (_) @body))) @def.class
(interface_declaration name: (type_identifier) @name) @def.interface
(type_alias_declaration name: (type_identifier) @name) @def.type
(enum_declaration name: (identifier) @name) @def.enum
(internal_module name: (_) @name) @def.namespace
(module name: [(string (string_fragment) @name) (identifier) @name (nested_identifier) @name]) @def.namespace
(ambient_declaration "global" @name (statement_block) @body) @def.namespace
(function_signature name: (identifier) @name) @def.function
(interface_body (method_signature name: (_) @name) @def.method)
(class_body (method_signature name: (_) @name) @def.method)
(abstract_method_signature name: (_) @name) @def.method
(public_field_definition name: (_) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.method
(program (ambient_declaration [(lexical_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))
                               (variable_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))] @def.variable))
(program (export_statement (ambient_declaration [(lexical_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))
                               (variable_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))] @def.variable)))
(internal_module body: (statement_block [(lexical_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))
                                         (variable_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))] @def.variable))
(internal_module body: (statement_block (export_statement [
   (lexical_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))
   (variable_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))] @def.variable)))
(function_declaration name: (identifier) @name) @def.function
(generator_function_declaration name: (identifier) @name) @def.function
(lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)])) @def.function
(variable_declaration (variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)])) @def.function
(expression_statement (assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)]
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)])) @def.function
(method_definition name: (_) @name) @def.method
(program [(lexical_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))
          (variable_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))] @def.variable)
(program (export_statement [(lexical_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))
                            (variable_declaration (variable_declarator name: [(identifier) @name (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)]) (array_pattern (identifier) @name)]))] @def.variable))

(import_statement source: (string (string_fragment) @module)) @import
(export_statement source: (string (string_fragment) @module)) @import
(lexical_declaration (variable_declarator value: (call_expression
  function: (identifier) @_require arguments: (arguments . (string (string_fragment) @module))))
  (#eq? @_require "require")) @import
(variable_declaration (variable_declarator value: (call_expression
  function: (identifier) @_require arguments: (arguments . (string (string_fragment) @module))))
  (#eq? @_require "require")) @import

(comment) @head
(decorator) @head
(import_require_clause source: (string (string_fragment) @module)) @import
