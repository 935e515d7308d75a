package program

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// Limits are what one custom resource may cost at most. The contract has the defaults, as
// #Limits, and a package may set others.
//
// What CUE costs grows with the square of the number of fields in one struct: 10,000 cost
// 0.1 s where nothing is done with them, and 30,000 nearly a second; it is a multiple of
// that where they are rendered. So it is counted before CUE sees anything, and refused.
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

// What the package reads is larger than the resource: it is written by others, and often
// copied as it is.
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

// A LimitError says that a custom resource is beyond a limit.
type LimitError struct {
	// Evaluated says that it took an evaluation to find out.
	Evaluated bool
	// TooSlow says that the evaluation took too long, which may be the fault of the machine.
	TooSlow bool
	// Text says which limit, with figures.
	Text string
	// bare is Text without what may come from a Secret, if that is another text.
	bare string
}

// Error says which limit, with figures.
func (e *LimitError) Error() string { return e.Text }

// readLimits returns the limits that the package sets, with what is wrong with them.
func (p *Program) readLimits() (Limits, fault.Faults) {
	var out Limits
	var faults fault.Faults
	for _, l := range []struct {
		name string
		into *int
	}{{"objects", &out.Objects}, {"fields", &out.Fields}, {"bytes", &out.Bytes}} {
		v := p.static.LookupPath(cue.MakePath(cue.Str("limits"), cue.Str(l.name)))
		n, err := v.Int64()
		if err != nil && cue.IsIncomplete(err) { // what is wrong otherwise, CUE says
			faults = append(faults, fault.Fault{
				Position: p.index.PositionOf("limits"), Path: "limits." + l.name,
				Message: "a limit is a number that is written out, whatever the resource says",
			})
		}
		*l.into = int(n)
	}
	return out, faults
}

// overLimit returns a LimitError when what would be filled into the package is beyond
// a limit. It costs little: one walk, that keeps nothing.
func (p *Program) overLimit(filling map[string]any) error {
	for _, part := range []struct {
		root          string
		fields, bytes int
	}{
		{"cr", p.limits.Fields, p.limits.Bytes},
		{"config", p.limits.Fields, p.limits.Bytes},
		{"live", p.limits.Fields * readFields, p.limits.Bytes * readBytes},
		{"inputs", p.limits.Fields * readFields, p.limits.Bytes * readBytes},
	} {
		var a amount
		a.add(filling[part.root], 0)
		var over string
		switch {
		case a.deep:
			over = fmt.Sprintf("%s is nested more than %d deep", part.root, maxDepth)
		case a.fields > part.fields:
			over = fmt.Sprintf("%s has %d fields and list elements%s, and may have %d",
				part.root, a.fields, mostOf(part.root, filling[part.root], amount.ofFields), part.fields)
		case a.widest > p.limits.Fields:
			over = fmt.Sprintf("a struct in %s has %d fields%s, and may have %d",
				part.root, a.widest, mostOf(part.root, filling[part.root], amount.ofWidest), p.limits.Fields)
		case a.bytes > part.bytes:
			over = fmt.Sprintf("the names and texts in %s have %d bytes%s, and may have %d",
				part.root, a.bytes, mostOf(part.root, filling[part.root], amount.ofBytes), part.bytes)
		default:
			continue
		}
		return &LimitError{Text: over}
	}
	return nil
}

// An amount is how much data there is.
type amount struct {
	// fields are the fields and list elements, and widest those of the largest struct.
	fields, widest int
	// bytes are those of names and texts.
	bytes int
	// deep says that it is nested too deep; what is below is not counted.
	deep bool
}

func (a amount) ofFields() int { return a.fields }
func (a amount) ofWidest() int { return a.widest }
func (a amount) ofBytes() int  { return a.bytes }

// add counts data.
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

// maxPath is how much of a path is said: anybody may choose the names in it.
const maxPath = 200

// mostOf says below which field most of some data is, or "".
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

// largest returns the field of a struct that has more than half of what there is in it.
func largest(data any, of func(amount) int) (inner any, name string, ok bool) {
	m, _ := data.(map[string]any)
	var all amount
	all.add(data, 0)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		var one amount
		one.add(m[k], 0)
		if 2*of(one) > of(all) {
			return m[k], k, true
		}
	}
	return nil, "", false
}

// A tally counts what one evaluation renders, so that it need not be taken out of CUE
// when there is too much.
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
	var a amount
	a.add(m, 0)
	t.bytes += a.bytes + punctuation*a.fields
}

// punctuation is what a field takes in JSON besides its name and text.
const punctuation = 6

// limitError returns what is too much in an evaluation, or nil.
func (e *evaluator) limitError() error {
	t := &e.rendered
	if !t.over() {
		return nil
	}
	in := ""
	if slices.Contains(e.index.Components(), t.most) {
		in = ", most of them in component " + t.most
	}
	bare := fmt.Sprintf("the package renders more objects for it than the limit, which is %d", t.limits.Objects)
	text := fmt.Sprintf("the package renders at least %d objects for it%s, and %d are the limit", t.objects, in, t.limits.Objects)
	switch {
	case t.objects > t.limits.Objects:
	case t.components > t.limits.Objects:
		bare = fmt.Sprintf("the package has more components for it than the limit, which is %d", t.limits.Objects)
		text = bare
	default:
		bare = fmt.Sprintf("the objects that the package renders for it take more than the limit of %d bytes", maxManifests)
		text = bare + in
	}
	return &LimitError{Evaluated: true, Text: text, bare: bare}
}

// discreet returns what may be said of a limit. How much there is too much of, and of
// what, may come from a Secret; a second evaluation would tell, and cost as much again.
func (p *Program) discreet(e *LimitError, s Session) error {
	if _, secret := p.blind(s, Rollout{}); secret && e.bare != "" {
		return &LimitError{Evaluated: e.Evaluated, Text: e.bare}
	}
	return e
}

// storable returns the author's status fields without the largest ones, if there is no
// room for all of them in a status, and which those are.
func storable(own map[string]any) (rest map[string]any, left string) {
	size := func(v any) int {
		var a amount
		a.add(v, 0)
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
