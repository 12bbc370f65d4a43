// The definitions of TypeScript files, as the TypeScript compiler's own parser sees them.
// Usage: node typescript_oracle.cjs FOLDER_OF_TYPESCRIPT FILE...   Prints one JSON list per file: [path, [[kind, name, first, last], ...]].
const [, , compiler, ...files] = process.argv;
const fs = require("fs");
const ts = require(compiler);
const K = ts.SyntaxKind;
const isFunction = (node) => node && (ts.isArrowFunction(node) || ts.isFunctionExpression(node));

for (const file of files) {
  const text = fs.readFileSync(file, "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineFeeds = [];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lineFeeds.push(at);
  const line = (place) => {
    let low = 0, high = lineFeeds.length;
    while (low < high) { const mid = (low + high) >> 1; if (lineFeeds[mid] < place) low = mid + 1; else high = mid; }
    return low + 1;
  };
  const found = [];
  const span = (node) => {
    const decorators = (node.modifiers || []).filter((one) => one.kind === K.Decorator);
    let start = node.getStart(source);
    if (decorators.length && decorators[0].pos === node.modifiers[0].pos) {
      let place = 0;
      while (place < node.modifiers.length && node.modifiers[place].kind === K.Decorator) place++;
      const rest = node.modifiers[place] || node.name || node;
      start = place < node.modifiers.length || !ts.isClassDeclaration(node) ? rest.getStart(source) : start;
      if (place === node.modifiers.length && ts.isClassDeclaration(node)) {
        start = node.getChildren(source).find((one) => one.kind === K.ClassKeyword).getStart(source);
      }
    }
    return [line(start), line(node.getEnd())];
  };
  const add = (kind, name, node) => found.push([kind, name, ...span(node)]);
  const names = (name) => ts.isIdentifier(name) ? [name.text]
    : name.elements.filter((one) => one.name).flatMap((one) => names(one.name));
  const nameOf = (name) => ts.isPrivateIdentifier(name) || ts.isIdentifier(name) ? name.text : name.getText(source);
  const visit = (node) => {
    if ((ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)
      || ts.isTypeAliasDeclaration(node) || ts.isEnumDeclaration(node)) && node.name) add("type", node.name.text, node);
    else if (ts.isModuleDeclaration(node) && !ts.isModuleDeclaration(node.parent)) {
      let last = node; const parts = [node.name.text];
      while (last.body && ts.isModuleDeclaration(last.body)) { last = last.body; parts.push(last.name.text); }
      if (node.name.kind !== K.Identifier || node.flags & ts.NodeFlags.Namespace || true) add("type", parts.pop(), node);
    } else if (ts.isMethodDeclaration(node) || ts.isGetAccessor(node) || ts.isSetAccessor(node)) add("member", nameOf(node.name), node);
    else if (ts.isConstructorDeclaration(node)) add("member", "constructor", node);
    else if (ts.isMethodSignature(node) && ts.isInterfaceDeclaration(node.parent)) add("member", nameOf(node.name), node);
    else if (ts.isPropertyDeclaration(node) && isFunction(node.initializer)) add("member", nameOf(node.name), node);
    else if (ts.isVariableStatement(node)) {
      const top = ts.isSourceFile(node.parent) || ts.isModuleBlock(node.parent);
      for (const one of node.declarationList.declarations) {
        const named = one.initializer && (isFunction(one.initializer) || ts.isClassExpression(one.initializer));
        if (top || named) for (const name of names(one.name)) add("variable", name, node);
      }
    } else if (ts.isExpressionStatement(node) && ts.isBinaryExpression(node.expression) && isFunction(node.expression.right)
      && node.expression.operatorToken.kind === K.EqualsToken) {
      const left = node.expression.left;
      if (ts.isIdentifier(left)) add("variable", left.text, node);
      if (ts.isPropertyAccessExpression(left)) add("variable", left.name.text, node);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  console.log(JSON.stringify([file, found]));
}
