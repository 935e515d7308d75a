package check

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// each stands in a path for every element.
const each = syntax.Each

// A part is what a package reads of a value of an input.
type part struct {
	fields map[string]*part
	each   *part
	// compared are the literals that the package compares the value with.
	compared []any
	// lookedUp is true if the value is the name of a field of the package that is looked up by it.
	lookedUp bool
	// decodes is what the package decodes the value as, if that is a text, and content what it reads of the result.
	decodes syntax.Format
	content *part
	// base64 is true if the text is decoded from base64, before anything else.
	base64 bool
	// provided is true if the package provides for its absence.
	provided bool
}

// at returns the part at a path, which is made if there is none.
func (p *part) at(path []string) *part {
	for _, name := range path {
		below := p.fields[name]
		switch {
		case name == each && p.each == nil:
			p.each = &part{}
			fallthrough
		case name == each:
			below = p.each
		case below == nil:
			if below = (&part{}); p.fields == nil {
				p.fields = map[string]*part{}
			}
			p.fields[name] = below
		}
		p = below
	}
	return p
}

// engineMetadata are fields of metadata that every object has, or that the engine adds.
var engineMetadata = []string{"name", "namespace", "uid", "generation", "creationTimestamp", "resourceVersion", "deletionTimestamp"}

// isGiven reports whether every object has what a path leads to.
func isGiven(path []string) bool {
	switch {
	case len(path) == 1:
		return path[0] == "apiVersion" || path[0] == "kind"
	case len(path) < 2 || path[0] != "metadata":
		return false
	}
	return slices.Contains(engineMetadata, path[1]) || slices.Contains(path, program.DigestAnnotation)
}

// An inputRead is what a package reads of the objects of one input.
type inputRead struct {
	name string
	// several is true if it has a selector.
	several bool
	kind    schema.GroupVersionKind
	part    part
}

// reads are what a package reads of its inputs, by their names.
type reads map[string]*inputRead

// of returns the part at a path from the root of the package, or nil if that is none of an object of an input, or one that
// every object has.
func (r reads) of(path []string, extent syntax.Extent) *part {
	if len(path) < 3 || path[0] != "inputs" || path[1] == each || !strings.HasPrefix(path[2], "object") {
		return nil
	}
	in := r[path[1]]
	if in == nil {
		in = &inputRead{name: path[1]}
		r[path[1]] = in
	}
	below := path[3:]
	if path[2] == "objects" {
		in.several = true
		below = below[min(1, len(below)):]
	}
	switch {
	case isGiven(below):
		return nil
	case extent == syntax.Members:
		below = append(slices.Clone(below), each)
	}
	return in.part.at(below)
}

// inputReads returns what a package reads of its inputs, by name. The kind of an input that exists only for some
// resources is not known.
func inputReads(p *program.Program) []*inputRead {
	found := reads{}
	for _, r := range p.Syntax().Readings() {
		found.of(r.Path, r.Extent)
	}
	for _, c := range p.Syntax().Examples().ComparedInputs() {
		if at := found.of(c.Path, syntax.Whole); at != nil {
			at.compared, at.lookedUp = append(at.compared, c.Value), at.lookedUp || c.LooksUp
		}
	}
	for _, d := range p.Syntax().Examples().Decoded() {
		if at := found.of(d.Path, syntax.Whole); at != nil {
			at.decode(d)
		}
	}
	for _, d := range p.Syntax().Examples().Defaulted() {
		if at := found.of(d.Path, syntax.Whole); at != nil {
			at.provided = true
		}
	}
	for _, i := range p.Inputs() {
		if in := found[i.Name]; in != nil {
			in.kind = i.Kind
		}
	}
	var out []*inputRead
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// decode notes what is decoded. A text in base64 that is decoded further counts as what is in it.
func (p *part) decode(d syntax.DecodedText) {
	p.base64 = p.base64 || d.Format == syntax.FormatBase64
	if p.decodes == "" || p.decodes == syntax.FormatBase64 {
		p.decodes = d.Format
	}
	if p.decodes != d.Format {
		return
	}
	if p.content == nil {
		p.content = &part{}
	}
	at := p.content.at(d.Below)
	at.provided = at.provided || d.Provided
	if d.Value != nil {
		at.compared = append(at.compared, d.Value)
	}
}

// An inputSplitter finds the branches of inputs.
type inputSplitter struct {
	*splitter

	kinds *program.Kinds
	words words
	kind  schema.GroupVersionKind
}

// inputs returns the nodes of inputs, by name, and adds their branches.
func (s *splitter) inputs(p *program.Program, kinds func() *program.Kinds) map[string]*node {
	reads := inputReads(p)
	if len(reads) == 0 {
		return nil
	}
	out := map[string]*node{}
	words := wordsOf(p)
	for _, in := range reads {
		b := inputSplitter{s, kinds(), words, in.kind}
		path := []string{"inputs", in.name, "object"}
		if !in.several {
			out[in.name] = s.place(strings.Join(path, "."), true, func() []choice { return b.whole(&in.part, path) })
			out[in.name].branch.usual = 1
			continue
		}
		path[2] = "objects"
		out[in.name] = s.place(strings.Join(path, "."), false, func() []choice {
			path := append(path, each)
			return several(b.place(pathText(path), false, func() []choice { return b.whole(&in.part, path) }), selected)
		})
		out[in.name].branch.usual = 1
	}
	return out
}

// selected is what the elements of an input with a selector are. They have names of their own.
const selected = "object"

// several returns the choices of no, one and two elements.
func several(element *node, noun string) []choice {
	out := []choice{{label: "no " + noun, elements: []*node{}}}
	for n := 1; n <= maxElements && element != nil; n++ {
		out = append(out, choice{label: counted(n, noun), made: true, coincides: n > 1 && noun != selected, elements: slices.Repeat([]*node{element}, n)})
	}
	return out
}

// whole returns the choice of an object, or of a struct, with what is read of it.
func (b inputSplitter) whole(p *part, path []string) []choice {
	out := choice{label: "written", fields: []field{}}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		if n := b.node(p.fields[name], append(slices.Clone(path), name)); n != nil {
			out.fields = append(out.fields, field{name, n})
		}
	}
	return []choice{out}
}

// typeOf returns the type of a field of an object, and whether every object has it.
func (b inputSplitter) typeOf(path []string) (of cue.Value, required bool) {
	below := path[3:]
	if path[2] == "objects" {
		below = path[4:]
	}
	if len(below) == 2 && below[0] == "metadata" && (below[1] == "labels" || below[1] == "annotations") {
		return cue.Value{}, false
	}
	of, required = b.kinds.FieldOf(b.kind, below)
	return of, required || len(below) == 1 && below[0] == "metadata"
}

// node returns the node of a field. It is left out only if the package provides for that: otherwise it just waits.
func (b inputSplitter) node(p *part, path []string) *node {
	of, required := b.typeOf(path)
	n := b.place(pathText(path), p.provided && !required, func() []choice {
		if len(path) > maxDepth {
			return nil
		}
		return b.choices(p, path, of)
	})
	if n != nil {
		n.encode = b.encoding(p, path)
	}
	return n
}

// choices returns the choices of a field of some type, which need not be known.
func (b inputSplitter) choices(p *part, path []string, of cue.Value) []choice {
	switch {
	case p.decodes == syntax.FormatJSON || p.decodes == syntax.FormatYAML:
		return b.content(p.content, append(slices.Clone(path), "("+string(p.decodes)+")"))
	case p.each != nil && of.IncompleteKind() != cue.ListKind && (of.Exists() || b.isMap(path)):
		return b.mapping(p, path)
	case p.each != nil:
		return several(b.node(p.each, append(slices.Clone(path), each)), "element")
	case len(p.fields) > 0:
		return b.whole(p, path)
	}
	return b.leaf(p, path, of)
}

// isMap reports whether a field is a map in every kind that has it.
func (b inputSplitter) isMap(path []string) bool {
	return slices.Contains([]string{"data", "stringData", "binaryData", "labels", "annotations"}, path[len(path)-1])
}

// mapping returns the choices of a map.
func (b inputSplitter) mapping(p *part, path []string) []choice {
	fixed := b.whole(p, path)[0]
	value := b.place(pathText(append(slices.Clone(path), each)), false, func() []choice {
		at := append(slices.Clone(path), each)
		of, _ := b.typeOf(at)
		return b.choices(p.each, at, of)
	})
	if value != nil {
		value.encode = b.encoding(p.each, append(slices.Clone(path), each))
	}
	if value == nil || len(fixed.fields) > 0 {
		return []choice{fixed}
	}
	var out []choice
	for n := range maxElements + 1 {
		out = append(out, mapOf(n, value))
	}
	return out
}

// leaf returns the choices of a field of which all is read.
func (b inputSplitter) leaf(p *part, path []string, of cue.Value) []choice {
	text := pathText(path)
	switch {
	case p.decodes == syntax.FormatNumber:
		return numberTexts(p)
	case !of.Exists() && b.isMap(path):
		return b.mapping(&part{each: &part{}}, path)
	case !of.Exists() && !b.isMap(path[:len(path)-1]):
		return contentLeaf(p, text, b.words)
	case of.Exists() && of.IncompleteKind() == cue.StructKind:
		return []choice{{label: "empty", fields: []field{}}}
	}
	fits := &apiextensionsv1.JSONSchemaProps{Type: "string"}
	if of.Exists() {
		if known := crd.FieldSchema(of); known != nil {
			fits = known
		}
	}
	if fits.Type == "string" && len(fits.Enum) == 0 {
		return b.text(p, text, fits)
	}
	b.compared[text] = append(b.compared[text], p.compared...)
	return b.splitter.choices(fits, text, len(path))
}

// text returns the choices of a text: what the package compares it with, and another one.
func (b inputSplitter) text(p *part, path string, fits *apiextensionsv1.JSONSchemaProps) []choice {
	var out []choice
	if s := textSample(fits, path, b.words); len(s.candidates) > 0 {
		s.provided = p.provided
		b.samples[path] = s
		out = append(out, s.choice("a text"))
	}
	compared := p.compared
	if p.content != nil {
		compared = slices.Concat(compared, p.content.compared)
	}
	for _, value := range distinct(compared) {
		if text, ok := value.(string); ok && allows(fits, text) {
			out = append(out, constant(text))
		}
	}
	if p.lookedUp { // another text leads nowhere
		slices.Reverse(out)
	}
	return out
}

// numberTexts returns the choices of a text that is decoded as a number: what is next to what it is compared with.
func numberTexts(p *part) []choice {
	numbers := []int64{1}
	for _, value := range p.content.compared {
		if n, ok := value.(int64); ok {
			numbers = append(numbers, n-1, n, n+1)
		}
	}
	var out []choice
	for _, n := range distinct(numbers) {
		c := constant(strconv.FormatInt(n, 10))
		c.made = true
		out = append(out, c)
	}
	return out
}

// content returns the choices of a value in JSON.
func (b inputSplitter) content(p *part, path []string) []choice {
	fieldNode := func(p *part, name string) *node {
		at := append(slices.Clone(path), name)
		return b.place(pathText(at), p.provided, func() []choice {
			if len(at) > maxDepth {
				return nil
			}
			return b.content(p, at)
		})
	}
	switch {
	case p.each != nil:
		element := b.place(pathText(append(slices.Clone(path), each)), false, func() []choice {
			return b.content(p.each, append(slices.Clone(path), each))
		})
		return several(element, "element")
	case len(p.fields) > 0:
		out := choice{label: "written", fields: []field{}}
		for _, name := range slices.Sorted(maps.Keys(p.fields)) {
			if n := fieldNode(p.fields[name], name); n != nil {
				out.fields = append(out.fields, field{name, n})
			}
		}
		return []choice{out}
	}
	return contentLeaf(p, pathText(path), b.words)
}

// contentLeaf returns the choices of a value in JSON of which all is read.
func contentLeaf(p *part, path string, words words) []choice {
	s := valueSample(path, words)
	out := []choice{s.choice("a value")}
	for _, value := range distinct(p.compared) {
		n, isNumber := value.(int64)
		if !isNumber {
			out = append(out, constant(value))
			continue
		}
		for _, near := range []int64{n - 1, n, n + 1} {
			out = append(out, constant(near))
		}
	}
	return out
}

// encoding returns what turns a value of a field into what the object has, or nil.
func (b inputSplitter) encoding(p *part, path []string) func(any) any {
	var out func(any) any
	if p.decodes == syntax.FormatJSON || p.decodes == syntax.FormatYAML {
		out = asJSON
	}
	parent := path[len(path)-2]
	isSecret := object.IsSecret(b.kind.GroupKind()) && parent == "data"
	if isSecret || parent == "binaryData" || p.base64 {
		out = chained(out, asBase64)
	}
	return out
}

// distinct returns values without those that occur before.
func distinct[T comparable](values []T) []T {
	var out []T
	for _, v := range values {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
