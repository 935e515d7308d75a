package program

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// Limits bound the cost of one custom resource. The contract has the defaults, as #Limits, and
// a package may set others.
//
// The cost of CUE grows with the square of the number of fields in one struct: 10,000 cost
// 0.1 s if nothing reads them, and 30,000 nearly a second; rendering them costs a multiple of
// that. So the fields are counted, and refused, before CUE sees them.
type Limits struct {
	// Objects is how many objects, and how many components, there may be.
	Objects int
	// Fields is how many fields and list elements the custom resource may have, and the
	// configuration, and a single struct of what was read.
	Fields int
	// Bytes is how long the names and texts of the custom resource may be, and those of
	// the configuration.
	Bytes int
}

// The objects that a package reads may be larger than the resource, because others write them.
const (
	// readFields is how many times Limits.Fields all live objects may have, and all
	// inputs. 100,000 in small structs cost 0.25 s.
	readFields = 10
	// readBytes is how many times Limits.Bytes their texts may be: 4 MiB by default, which
	// is four ConfigMaps of the largest size.
	readBytes = 16
)

const (
	// maxDepth is how deep data may be nested.
	maxDepth = 64
	// maxManifests is how many bytes all manifests of a resource may take.
	maxManifests = 8 << 20
	// maxStatus is how many bytes the author's fields of a status may take. The API server
	// takes 1.5 MiB for all of a resource.
	maxStatus = 128 << 10
)

// A LimitError reports that a custom resource exceeds a limit.
type LimitError struct {
	// Evaluated is true if only an evaluation showed it.
	Evaluated bool
	// TooSlow is true if the evaluation took too long, which a slow machine may cause.
	TooSlow bool
	// Text names the limit, with figures.
	Text string
	// bare is Text without what may come from a Secret, if that is another text.
	bare string
}

// Error names the limit, with figures.
func (e *LimitError) Error() string { return e.Text }

// readLimits returns the limits that the package sets, and their faults.
func readLimits(static cue.Value, index *syntax.Index) (out Limits, faults fault.Faults) {
	for _, l := range []struct {
		name string
		into *int
	}{{"objects", &out.Objects}, {"fields", &out.Fields}, {"bytes", &out.Bytes}} {
		v := Lookup(static, "limits", l.name)
		n, err := v.Int64()
		if err != nil && cue.IsIncomplete(err) { // CUE reports all other errors
			faults = append(faults, fault.Fault{
				Position: index.PositionOf("limits"), Path: "limits." + l.name,
				Message: "a limit is a number that is written out, whatever the resource says",
			})
		}
		*l.into = int(n)
	}
	return out, faults
}

// A share is what one part of a view may have.
type share struct {
	root          string
	fields, bytes int
}

func (l Limits) shares() [4]share {
	return [4]share{
		{"cr", l.Fields, l.Bytes},
		{"config", l.Fields, l.Bytes},
		{"live", l.Fields * readFields, l.Bytes * readBytes},
		{"inputs", l.Fields * readFields, l.Bytes * readBytes},
	}
}

// meets reports whether an amount is within a share.
func (l Limits) meets(a amount, s share) bool {
	return !a.deep && a.fields <= s.fields && a.widest <= l.Fields && a.bytes <= s.bytes
}

// holds reports whether all that is filled into the package is within the limits.
func (l Limits) holds(v View) bool {
	for _, s := range l.shares() {
		var a amount
		if v.part.fields[s.root].count(&a, v.values[s.root], 0); !l.meets(a, s) {
			return false
		}
	}
	return true
}

// check returns a LimitError when what would be filled into the package is beyond
// a limit. It costs little: one walk, that keeps nothing.
func (l Limits) check(filling map[string]any) error {
	for _, part := range l.shares() {
		data := filling[part.root]
		all := amountOf(data)
		if l.meets(all, part) {
			continue
		}
		if all.deep {
			return &LimitError{Text: fmt.Sprintf("%s is nested more than %d deep", part.root, maxDepth)}
		}
		for _, rule := range []struct {
			text string
			of   func(amount) int
			most int
		}{
			{"%s has %d fields and list elements%s, and may have %d", func(a amount) int { return a.fields }, part.fields},
			{"a struct in %s has %d fields%s, and may have %d", func(a amount) int { return a.widest }, l.Fields},
			{"the names and texts in %s have %d bytes%s, and may have %d", func(a amount) int { return a.bytes }, part.bytes},
		} {
			if n := rule.of(all); n > rule.most {
				return &LimitError{Text: fmt.Sprintf(rule.text, part.root, n, mostOf(part.root, data, rule.of), rule.most)}
			}
		}
	}
	return nil
}

// An amount is how much data there is.
type amount struct {
	// fields are the fields and list elements, and widest those of the largest struct.
	fields, widest int
	// bytes are those of names and texts.
	bytes int
	// deep is true if the data are nested too deeply; deeper levels are not counted.
	deep bool
}

// amountOf counts data.
func amountOf(data any) amount {
	var a amount
	a.add(data, 0)
	return a
}

// add counts more data.
func (a *amount) add(data any, depth int) {
	if depth > maxDepth {
		a.deep = true
		return
	}
	switch v := data.(type) {
	case map[string]any:
		a.fields += len(v)
		a.widest = max(a.widest, len(v))
		for k, e := range v {
			a.bytes += len(k)
			a.add(e, depth+1)
		}
	case []any:
		a.fields += len(v)
		for _, e := range v {
			a.add(e, depth+1)
		}
	case string:
		a.bytes += len(v)
	}
}

// maxPath is the length at which a path in a message is cut, because users choose its names.
const maxPath = 200

// mostOf returns the field that contains more than half of some data, as a text, or "".
func mostOf(root string, data any, of func(amount) int) string {
	sels := []cue.Selector{cue.Str(root)}
	for len(sels) < maxDepth {
		inner, name, ok := largest(data, of)
		if !ok {
			break
		}
		sels, data = append(sels, cue.Str(name)), inner
	}
	path := cue.MakePath(sels...).String()
	switch {
	case len(sels) == 1:
		return ""
	case len(path) > maxPath:
		path = strings.ToValidUTF8(path[:maxPath], "") + "…"
	}
	return ", most of them in " + path
}

// largest returns the field of a struct that has more than half of the amount.
func largest(data any, of func(amount) int) (inner any, name string, ok bool) {
	m, _ := data.(map[string]any)
	all := of(amountOf(data))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if 2*of(amountOf(m[k])) > all {
			return m[k], k, true
		}
	}
	return nil, "", false
}

// A tally counts what one evaluation renders, so that the evaluation can stop before it reads
// too many objects out of CUE.
type tally struct {
	limits Limits
	// objects, components and bytes are what was rendered, and most has the most objects.
	objects, components, bytes int
	most                       string
	mostObjects                int
}

// component counts a component and its objects.
func (t *tally) component(name string, objects cue.Value) {
	n := 0
	for range fields(objects) {
		n++
	}
	t.components++
	t.objects += n
	if n > t.mostObjects {
		t.most, t.mostObjects = name, n
	}
}

// over reports whether there is too much.
func (t *tally) over() bool {
	return t.limits != Limits{} && (t.objects > t.limits.Objects || t.components > t.limits.Objects || t.bytes > maxManifests)
}

// manifest counts the bytes of a manifest.
func (t *tally) manifest(m map[string]any) {
	a := amountOf(m)
	t.bytes += a.bytes + punctuation*a.fields
}

// punctuation is what a field takes in JSON besides its name and text.
const punctuation = 6

// limitError returns a LimitError if the evaluation has rendered too much, or nil.
func (e *evaluator) limitError() error {
	t := &e.rendered
	if !t.over() {
		return nil
	}
	in := ""
	if slices.Contains(e.index.Components(), t.most) {
		in = ", most of them in component " + t.most
	}
	out := &LimitError{Evaluated: true}
	switch limit := t.limits.Objects; {
	case t.objects > limit:
		out.Text = fmt.Sprintf("the package renders at least %d objects for it%s, and %d are the limit", t.objects, in, limit)
		out.bare = fmt.Sprintf("the package renders more objects for it than the limit, which is %d", limit)
	case t.components > limit:
		out.Text = fmt.Sprintf("the package has more components for it than the limit, which is %d", limit)
	default:
		out.bare = fmt.Sprintf("the objects that the package renders for it take more than the limit of %d bytes", maxManifests)
		out.Text = out.bare + in
	}
	return out
}

// withoutFigures returns a LimitError without figures and names if those may come from a Secret. A
// second evaluation would tell, but would cost as much again.
func (s *Secrets) withoutFigures(e *LimitError, session Session) error {
	if _, secret := s.blind(session, Rollout{}); secret && e.bare != "" {
		return &LimitError{Evaluated: e.Evaluated, Text: e.bare}
	}
	return &LimitError{Evaluated: e.Evaluated, Text: e.Text}
}

// storable removes the largest of the author's status fields until the rest fits into a status.
// It returns the rest, and a message that names the removed fields, or "".
func storable(own map[string]any) (rest map[string]any, left string) {
	size := func(v any) int {
		a := amountOf(v)
		return a.bytes + punctuation*(a.fields+1)
	}
	var names []string
	for size(own) > maxStatus {
		worst := slices.MaxFunc(slices.Sorted(maps.Keys(own)), func(a, b string) int { return size(own[a]) - size(own[b]) })
		if len(names) == 0 {
			own = maps.Clone(own)
		}
		delete(own, worst)
		names = append(names, worst)
	}
	if len(names) == 0 {
		return own, ""
	}
	return own, fmt.Sprintf("the package's status fields take more than the limit of %d bytes, and these are left out: %s", maxStatus, strings.Join(names, ", "))
}
