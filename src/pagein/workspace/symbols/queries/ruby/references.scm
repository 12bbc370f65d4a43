(call method: [(identifier) (constant)] @ref)
(constant) @ref
