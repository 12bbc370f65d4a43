; Classes, functions, also those bound to a name, and variables of the module.
(class_declaration name: (identifier) @name) @def.class
(lexical_declaration (variable_declarator name: (identifier) @name value: (class body: (_) @body))) @def.class
(field_definition property: (_) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.method
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
