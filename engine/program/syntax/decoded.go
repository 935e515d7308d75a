package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// A Format is how a text from outside is written.
type Format string

// The formats that packages decode.
const (
	FormatJSON   Format = "json"
	FormatYAML   Format = "yaml"
	FormatNumber Format = "number"
	FormatBase64 Format = "base64"
)

// A DecodedText is a text of an input that the package decodes, and a part of the result that it refers to.
type DecodedText struct {
	// Path leads to the text, as in inputs, answer, object, data, answer.json.
	Path   []string
	Format Format
	// Below leads from the result to the part; it is empty for all of it.
	Below []string
	// Value is a literal that the part is compared with, or nil.
	Value any
	// Provided is true if the text provides for the absence of the part.
	Provided bool
}

// decoders are the functions that decode a text, by the format, each with the number of the argument that is the text.
var decoders = map[string]struct {
	format   Format
	argument int
}{
	"encoding/json.Unmarshal": {FormatJSON, 0},
	"encoding/yaml.Unmarshal": {FormatYAML, 0},
	"encoding/base64.Decode":  {FormatBase64, 1},
	"strconv.Atoi":            {FormatNumber, 0},
	"strconv.ParseInt":        {FormatNumber, 0},
	"strconv.ParseUint":       {FormatNumber, 0},
	"strconv.ParseFloat":      {FormatNumber, 0},
	"strconv.ParseNumber":     {FormatNumber, 0},
}

// Examples are the values that the text of a package shows, or says how they are written. A check makes up resources and
// inputs by them.
type Examples struct {
	*names

	files []*ast.File
	order []string
}

// Examples returns the values that the text shows.
func (x *Index) Examples() *Examples { return &Examples{&x.names, x.files, x.order} }

// Decoded returns the texts of inputs that the package decodes, in the order of the text.
func (x *Examples) Decoded() []DecodedText {
	var out []DecodedText
	for n := range NodesIn(x.files...) {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if comparing[n.Op] {
				out = append(out, x.decodedComparison(n.X, n.Y)...)
				out = append(out, x.decodedComparison(n.Y, n.X)...)
			}
			out = append(out, x.decodedProvided(n)...)
		case ast.Expr:
			out = append(out, x.decodedBy(n, 0)...)
		}
	}
	return out
}

// decodedComparison returns the part that is compared with a literal.
func (x *Examples) decodedComparison(e, literal ast.Expr) []DecodedText {
	value, ok := literalOf(literal)
	if !ok {
		return nil
	}
	out := x.decodedBy(e, 0)
	for i := range out {
		out[i].Value = value
	}
	return out
}

// decodedProvided returns the part for whose absence an expression provides.
func (x *Examples) decodedProvided(b *ast.BinaryExpr) []DecodedText {
	var out []DecodedText
	for _, e := range providedBy(b) {
		out = append(out, x.decodedBy(e, 0)...)
	}
	for i := range out {
		out[i].Provided = true
	}
	return out
}

// providedBy returns the expressions for whose absence one provides: those that are a default, and those that are compared
// with bottom.
func providedBy(b *ast.BinaryExpr) []ast.Expr {
	switch preferred, ok := b.X.(*ast.UnaryExpr); {
	case ok && b.Op == token.OR && preferred.Op == token.MUL:
		return conjunctsOf(preferred.X)
	case isBottomComparison(b):
		return []ast.Expr{b.X}
	}
	return nil
}

// conjunctsOf returns the operands of a conjunction.
func conjunctsOf(e ast.Expr) []ast.Expr {
	e = unparenthesized(e)
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.AND {
		return append(conjunctsOf(b.X), conjunctsOf(b.Y)...)
	}
	return []ast.Expr{e}
}

// decodedBy returns what an expression decodes, also through names that stand for it. A text that is decoded
// twice, as JSON in base64, counts by the outer format.
func (x *Examples) decodedBy(e ast.Expr, depth int) []DecodedText {
	if depth > maxAliases {
		return nil
	}
	c := chainOf(e)
	var out []DecodedText
	switch base := c.base.(type) {
	case *ast.CallExpr:
		out = x.decodedByCall(base, depth)
	case *ast.Ident:
		out = x.decodedByName(base, depth)
	}
	for i := range out {
		out[i].Below = append(slices.Clone(out[i].Below), c.names()...)
	}
	return out
}

// decodedByCall returns what a call decodes.
func (x *Examples) decodedByCall(call *ast.CallExpr, depth int) []DecodedText {
	d, decodes := decoders[function(call.Fun)]
	if !decodes || len(call.Args) <= d.argument {
		return nil
	}
	path, ok := x.inputText(call.Args[d.argument], depth)
	if !ok {
		return nil
	}
	return []DecodedText{{Path: path, Format: d.format}}
}

// decodedByName returns what a name stands for: the elements of a loop, or what is declared.
func (x *Examples) decodedByName(id *ast.Ident, depth int) []DecodedText {
	if _, rooted := x.rooted(id); rooted {
		return nil
	}
	if clause, ok := id.Scope.(*ast.ForClause); ok && isNameOf(clause.Value, id) {
		out := x.decodedBy(valueChainOr(clause.Source), depth+1)
		for i := range out {
			out[i].Below = append(slices.Clone(out[i].Below), Each)
		}
		return out
	}
	var out []DecodedText
	for _, m := range x.declared(id) {
		if m.value != nil {
			out = append(out, x.decodedBy(m.value, depth+1)...)
		}
	}
	return out
}

// valueChainOr returns the chain that is the default beside an empty list or struct, or the expression itself.
func valueChainOr(e ast.Expr) ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.OR && isEmpty(b.Y) {
		if preferred, ok := b.X.(*ast.UnaryExpr); ok && preferred.Op == token.MUL {
			return preferred.X
		}
	}
	return e
}

// inputText returns the path of the input's text that an expression is, also if that is in base64 or in quotes.
func (x *Examples) inputText(e ast.Expr, depth int) ([]string, bool) {
	if in, ok := e.(*ast.Interpolation); ok && len(in.Elts) == 3 && isQuote(in.Elts[0]) && isQuote(in.Elts[2]) {
		e = in.Elts[1]
	}
	if path := x.inputPath(e); path != nil {
		return path, true
	}
	for _, d := range x.decodedBy(e, depth+1) {
		if d.Format == FormatBase64 && len(d.Below) == 0 {
			return d.Path, true
		}
	}
	return nil, false
}

// isQuote reports whether a part of an interpolation has no text of its own.
func isQuote(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && len(lit.Value) <= len(`"\(`)
}

// inputPath returns the path of a reference into the objects of an input, also by the variable of a loop over
// them, or nil.
func (x *Examples) inputPath(e ast.Expr) []string {
	e = unparenthesized(e)
	if path := x.operand(e).Path; len(path) > 3 && path[0] == "inputs" {
		return path
	}
	c := chainOf(e)
	root := c.root()
	if root == nil {
		return nil
	}
	clause, ok := root.Scope.(*ast.ForClause)
	if !ok || !isNameOf(clause.Value, root) {
		return nil
	}
	source := x.operand(valueChainOr(clause.Source)).Path
	if len(source) == 0 {
		source = x.inputPath(valueChainOr(clause.Source))
	}
	if len(source) < 3 || source[0] != "inputs" {
		return nil
	}
	return append(append(slices.Clone(source), Each), c.names()...)
}

func unparenthesized(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// ComparedInputs returns the literals that the text compares fields of the objects of inputs with, or looks up by them, in
// the order of the text.
func (x *Examples) ComparedInputs() []ComparedLiteral {
	var out []ComparedLiteral
	for n := range NodesIn(x.files...) {
		if index, ok := n.(*ast.IndexExpr); ok {
			out = append(out, x.lookups(index)...)
		}
		b, ok := n.(*ast.BinaryExpr)
		if !ok || !comparing[b.Op] {
			continue
		}
		for _, sides := range [][2]ast.Expr{{b.X, b.Y}, {b.Y, b.X}} {
			if value, ok := literalOf(sides[1]); ok {
				if path := x.inputPath(sides[0]); path != nil {
					out = append(out, ComparedLiteral{Path: path, Value: value})
				}
			}
		}
	}
	return out
}

// lookups returns the names of the fields of a struct of the package, if a field of an input says which one is meant.
func (x *Examples) lookups(e *ast.IndexExpr) []ComparedLiteral {
	c := chainOf(e.X)
	path := x.inputPath(e.Index)
	if path == nil || c.root() == nil || len(c.steps) > 0 {
		return nil
	}
	var out []ComparedLiteral
	for _, m := range x.declared(c.root()) {
		for _, named := range m.Members() {
			if named.IsRegular() {
				out = append(out, ComparedLiteral{Path: path, Value: named.name, LooksUp: true})
			}
		}
	}
	return out
}

// A DefaultedField is a field of an object of an input for whose absence the text provides: by a default beside it, or by
// a condition about it.
type DefaultedField struct {
	// Component is the component whose objects have the text, or "" for a text elsewhere.
	Component string
	Path      []string
	// Position is where the field is referred to.
	Position fault.Position
	// Replaced is true if a default takes the place of the field whatever is wrong with it.
	Replaced bool
}

// Defaulted returns the fields of inputs for whose absence the text provides, by component and then in the order of the text.
func (x *Examples) Defaulted() []DefaultedField {
	var out []DefaultedField
	for _, name := range x.order {
		for _, m := range x.definitions[name] {
			for _, part := range m.Members() {
				if part.name == "objects" && part.value != nil {
					out = append(out, x.defaultedIn(part.value, name)...)
				}
			}
		}
	}
	for _, f := range x.files {
		for _, d := range x.defaultedIn(f, "") {
			if !slices.ContainsFunc(out, func(o DefaultedField) bool { return o.Position == d.Position && slices.Equal(o.Path, d.Path) }) {
				out = append(out, d)
			}
		}
	}
	return out
}

// defaultedIn is Defaulted for one node.
func (x *Examples) defaultedIn(n ast.Node, component string) []DefaultedField {
	var out []DefaultedField
	for n := range NodesIn(n) {
		b, ok := n.(*ast.BinaryExpr)
		if !ok {
			continue
		}
		for _, e := range providedBy(b) {
			path := x.operand(e).Path
			if len(path) < 3 {
				path = x.inputPath(e)
			}
			if len(path) > 2 && path[0] == "inputs" {
				out = append(out, DefaultedField{component, path, fault.PositionAt(e.Pos()), b.Op == token.OR})
			}
		}
	}
	return out
}

// Decides returns the references on which the identity of an input rests, as far as the text shows.
func (x *Index) Decides(input string) []Reference {
	r := newReferences(x)
	r.follow = true
	for _, m := range x.at([]string{"inputs", input}) {
		for _, part := range m.Members() {
			if part.name != "object" && part.name != "objects" {
				r.member(part)
			}
		}
	}
	return r.all()
}

// Words returns the texts that the package writes as literals or names fields by, and the expressions that it matches
// texts with, in the order of the text; the names come last.
func (x *Examples) Words() (texts, patterns []string) {
	var names []string
	add := func(to *[]string, word string) {
		if word != "" && !slices.Contains(*to, word) {
			*to = append(*to, word)
		}
	}
	for _, f := range x.files {
		ast.Walk(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportDecl:
				return false
			case *ast.UnaryExpr:
				if lit, ok := n.X.(*ast.BasicLit); ok && n.Op == token.MAT {
					add(&patterns, unquoted(lit))
					return false
				}
			case *ast.BasicLit:
				add(&texts, unquoted(n))
			case *ast.Field:
				if name, ok := literalLabel(n.Label); ok && isRegular(name) {
					add(&names, name)
				}
			}
			return true
		}, nil)
	}
	for _, name := range names {
		add(&texts, name)
	}
	return texts, patterns
}
