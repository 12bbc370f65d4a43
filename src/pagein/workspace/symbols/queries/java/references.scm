(method_invocation name: (identifier) @ref)
(type_identifier) @ref
(annotation name: (identifier) @ref)
(marker_annotation name: (identifier) @ref)
