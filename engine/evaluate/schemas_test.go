package evaluate_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/template"
)

// schemaPackage is a package whose resource has a schema of a schemaForm, and whose objects are as one of
// schemaParts says.
const schemaPackage = `package shop

%s
import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
#Spec: {` + schemaFields + `}
%s
%s
`

// schemaFields are the fields that every schemaForm begins with.
const schemaFields = `
	n?: int, m?: int, r?: number, s?: string, t?: string, e?: string, on?: bool
	o?: {a?: int, b?: string, ...}
	l?: [...int]
	h?: [...string]
	p?: [string]: int
	q?: [string]: string
	ps?: [...{n: int, t?: string, ...}]
	os?: [string]: {a?: int, b?: string, ...}
	x?: _
`

const schemaObject = `components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name}
`

// A schemaPart is what a package does with its resource.
type schemaPart struct{ name, imports, text string }

// schemaParts are for schemas of the resource.
var schemaParts = []schemaPart{
	{"nothing", "", schemaObject},
	{"the spec as it is", "", schemaObject + `components: web: objects: cm: data: cr.spec`},
	{"the spec as JSON", `import "encoding/json"`, schemaObject + `components: web: objects: cm: data: all: json.Marshal({for k, v in cr.spec if k != "r" {(k): v}})`},
	{"each field", "", schemaObject + `components: web: objects: cm: data: {for k, v in cr.spec {(k): v}}`},
	{"some fields", "", schemaObject + "components: web: objects: cm: data: {if cr.spec.s != _|_ {s: \"s-\\(cr.spec.s)\"}, if cr.spec.n != _|_ {n: \"\\(cr.spec.n+1)\"}, t: *cr.spec.t | \"none\", o: *cr.spec.o | {}}"},
	{"conditions", "", schemaObject + "components: web: {verify: ok: live.web.cm.data.n >= (*cr.spec.n | 1)\nrequires: r: (*cr.spec.m | 1) > 0}"},
	{"the status", "", schemaObject + `status: {all: cr.spec, n: *cr.spec.n | 0, e: "is \(*cr.spec.e | "none")"}`},
	{"components", "", schemaObject + `components: {for k, v in *cr.spec.p | {} {"p-\(k)": objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: k, data: n: "\(v)"}}}`},
}

// definitionParts are what a package does with a definition that it gives the fields of its resource.
var definitionParts = []schemaPart{
	{"the data of an object", "", schemaObject + `components: web: objects: cm: data: #Checked & cr.spec`},
	{"as JSON", `import "encoding/json"`, schemaObject + "components: web: objects: cm: data: all: json.Marshal(_v)\n_v: {for k, v in #Checked & cr.spec if k != \"r\" {(k): v}}"},
	{"one field by name", "", schemaObject + "components: web: objects: cm: data: {if cr.spec.n != _|_ {n: (#Checked & {for k, v in cr.spec {(k): v}}).n}}"},
	{"by a hidden field", "", schemaObject + "components: web: objects: cm: data: v: _v\n_v: #Checked & {cr.spec}"},
	{"fields one by one", "", schemaObject + "components: web: objects: cm: data: #Checked & {if cr.spec.n != _|_ {n: cr.spec.n}, if cr.spec.m != _|_ {m: cr.spec.m}, if cr.spec.s != _|_ {s: cr.spec.s}, t: *cr.spec.t | \"abd\", e: *cr.spec.e | \"a\", on: *cr.spec.on | true, if cr.spec.p != _|_ {p: cr.spec.p}, if cr.spec.h != _|_ {h: cr.spec.h}, if cr.spec.l != _|_ {l: cr.spec.l}, if cr.spec.o != _|_ {o: cr.spec.o}}"},
	{"the status", "", schemaObject + `status: {all: #Checked & cr.spec}`},
	{"a condition", "", schemaObject + "_v: #Checked & cr.spec\ncomponents: web: {verify: ok: live.web.cm.data.n >= (*_v.n | 1)\nobjects: cm: data: n: _v.n}"},
	{"a component for each key", "", schemaObject + `components: {for k, v in (#Checked & cr.spec).p {"p-\(k)": objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: k, data: n: "\(v)"}}}`},
}

// asDefinition returns the schema as a definition that the package itself has, and a resource whose fields are free.
func (f schemaForm) asDefinition() schemaForm {
	text := "#Checked: {" + schemaFields + "}\n" + strings.ReplaceAll(f.text, "#Spec", "#Checked")
	return schemaForm{f.name, f.imports, text}
}

// load compiles the package of a schema with a part. It returns the error of a package that is wrong.
func (f schemaForm) load(use schemaPart) (*program.Program, error) {
	imports := f.imports
	if use.imports != imports {
		imports += "\n" + use.imports
	}
	text := fmt.Sprintf(schemaPackage, imports, f.text, use.text)
	s, err := source.Loader{}.Module("shop", "", "shop", fstest.MapFS{"shop/shop.cue": {Data: []byte(text)}})
	if err != nil {
		return nil, err
	}
	return program.Load(s)
}

// TestNoSchemaLetsAValuePassThatBreaksIt evaluates sessions of packages with all kinds of constraints on their resource. Most have the
// shape of another one, and values that break a constraint or just do not. It does so in both orders, since the first valid one of a
// shape makes its template.
//
// It is some of them unless OPERETTA_TEMPLATE_SESSIONS asks for more: a sweep does, and from 100,000 on
// all that a package may do with the resource is tried with each schema, and two schemas at once.
func TestNoSchemaLetsAValuePassThatBreaksIt(t *testing.T) {
	t.Parallel()
	expectNoDifferences(t, slices.Concat(withConditions, withBounds, withStructs), schemaParts)
}

// TestNoDefinitionLetsAValuePassThatBreaksIt does the same with definitions that a package gives the fields of its resource.
func TestNoDefinitionLetsAValuePassThatBreaksIt(t *testing.T) {
	t.Parallel()
	var forms []schemaForm
	for _, f := range slices.Concat(withConditions, withBounds, withStructs) {
		if !strings.Contains(f.text, "cr:") && !strings.Contains(f.text, "config:") {
			forms = append(forms, f.asDefinition())
		}
	}
	expectNoDifferences(t, forms, definitionParts)
}

// expectNoDifferences compares sessions of each form with what CUE says.
func expectNoDifferences(t *testing.T, forms []schemaForm, parts []schemaPart) {
	t.Helper()
	asked, _ := strconv.Atoi(os.Getenv("OPERETTA_TEMPLATE_SESSIONS"))
	answered := &atomic.Int64{}
	t.Cleanup(func() {
		if answered.Load() == 0 {
			t.Error("no template has answered")
		}
		t.Logf("templates have answered %d times", answered.Load())
	})
	for i, f := range forms {
		if asked == 0 && i%6 > 0 {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for n := range 1 + min(asked/100_000, 1)*len(parts) {
				answered.Add(f.expectWhatCUESays(t, parts[(i+n)%len(parts)], max(asked/1800, 5)))
			}
		})
		for n := range asked / 100_000 {
			r := rand.New(rand.NewPCG(hashOf(f.name), uint64(n)))
			both := f.and(forms[r.IntN(len(forms))])
			t.Run(both.name, func(t *testing.T) {
				t.Parallel()
				both.expectWhatCUESays(t, parts[(i+n)%len(parts)], 30)
			})
		}
	}
}

// and returns two forms at once, which may contradict each other.
func (f schemaForm) and(g schemaForm) schemaForm {
	both := schemaForm{fmt.Sprintf("%s and %s", f.name, g.name), f.imports, f.text + "\n" + g.text}
	if g.imports != f.imports {
		both.imports += "\n" + g.imports
	}
	return both
}

// unloadable are the forms that make no package, with the reason.
var unloadable = map[string]string{
	"list.Contains": "CUE calls the validator with the type of the list, and errs",
}

// expectWhatCUESays compares sessions of a schema with a part, and returns how often templates have answered. Two schemas
// together need not be a package.
func (f schemaForm) expectWhatCUESays(t *testing.T, part schemaPart, count int) int64 {
	t.Helper()
	p, err := f.load(part)
	if err != nil {
		if unloadable[f.name] == "" && !strings.Contains(f.name, " and ") {
			t.Fatal(err)
		}
		t.Skipf("there is no such package: %v", err)
	}
	sessions := f.sessions(rand.New(rand.NewPCG(hashOf(f.name), hashOf(part.name))), count)
	answered := expectTheSame(t, p, sessions)
	t.Logf("%s: templates answered %d of %d", part.name, answered, 2*len(sessions))
	return int64(answered)
}

func hashOf(text string) uint64 {
	h := fnv.New64()
	_, _ = h.Write([]byte(text)) // a hash never errors
	return h.Sum64()
}

// expectTheSame evaluates sessions with templates and by CUE, in both orders.
func expectTheSame(t *testing.T, p *program.Program, sessions []program.Session) (answered int) {
	t.Helper()
	want := answersOfCUE(p, sessions)
	order := make([]int, len(sessions))
	for i := range order {
		order[i] = i
	}
	for range 2 {
		clock := time.Unix(0, 0)
		b := &askedBackend{Backend: evaluate.InProcess(p)}
		e := evaluate.New(p, evaluate.Options{Backend: b, CheckEvery: 1 << 30, Now: func() time.Time {
			clock = clock.Add(2 * time.Second)
			return clock
		}})
		for _, i := range order {
			got, err := e.Evaluate(sessions[i])
			if !reflect.DeepEqual(want[i].rollout, got) || fmt.Sprint(want[i].err) != fmt.Sprint(err) {
				t.Errorf("session %d, %v: errors %v and %v; (-CUE +template):\n%s", i, sessions[i].CR["spec"], want[i].err, err, cmp.Diff(want[i].rollout, got))
				return answered
			}
		}
		answered += len(sessions) - b.asked
		slices.Reverse(order)
	}
	return answered
}

// An askedBackend counts how often CUE is asked.
type askedBackend struct {
	evaluate.Backend
	asked int
}

// Evaluate implements evaluate.Backend.
func (b *askedBackend) Evaluate(ctx context.Context, s program.Session) (program.Rollout, error) {
	b.asked++
	return b.Backend.Evaluate(ctx, s)
}

// Compile implements evaluate.Backend.
func (b *askedBackend) Compile(ctx context.Context, s program.Session, pins template.Pins) (compile.Result, error) {
	b.asked++
	return b.Backend.Compile(ctx, s, pins)
}

// plainSpec returns a spec that most schemas allow.
func plainSpec() map[string]any {
	return map[string]any{
		"n": int64(3), "m": int64(5), "r": 1.5, "s": "abc", "t": "abd", "e": "a", "on": true,
		"o": map[string]any{"a": int64(3), "b": "x"}, "l": []any{int64(1), int64(2)}, "h": []any{"x", "y"},
		"p": map[string]any{"a": int64(1), "b": int64(2)}, "q": map[string]any{"80": "v", "abc": "u"},
		"ps": []any{map[string]any{"n": int64(1), "t": "u"}, map[string]any{"n": int64(2)}},
		"os": map[string]any{"a": map[string]any{"a": int64(1), "b": "x"}}, "x": "1",
	}
}

// fittingX has the value of the field x where a form needs another one.
var fittingX = map[string]any{
	"matchN of structs": map[string]any{"a": int64(1), "b": "y"}, "matchIf": map[string]any{"a": int64(1), "b": "y"},
	"number or text with bounds": int64(80), "text or null": nil, "net.IPv4": "10.0.0.1", "time.Duration": "5s",
	"disjunction of a list and a struct": []any{int64(1), int64(2)}, "json.Validate": `{"a":1}`, "yaml.Validate": `{"a":1}`,
}

// A breaker makes specs of which some break a schema.
type breaker struct {
	*rand.Rand
	// ints and texts are near to what the schema names.
	ints  []int64
	texts []string
	// names are the fields that the schema names.
	names []string
}

var (
	wordIn   = regexp.MustCompile(`[A-Za-z]+`)
	numberIn = regexp.MustCompile(`[0-9]+`)
	textIn   = regexp.MustCompile(`"([^"]*)"`)
)

// newBreaker returns a breaker of what a text names, among the fields of a spec.
func newBreaker(r *rand.Rand, text string, spec map[string]any) *breaker {
	b := &breaker{
		Rand:  r,
		ints:  []int64{0, 1, 2, 3, 4, 5, 6, -1, 1 << 53, 9007199254740993, 1_000_000_000_000_000_000},
		texts: []string{"", "a", "b", "abc", "abd", "ab", "xz", "x", "ü", "80", "1", "10.0.0.1", "5s", `{"a":2}`, strings.Repeat("ab", 300)},
	}
	for _, digits := range numberIn.FindAllString(text, 8) {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			b.ints = append(b.ints, n-1, n, n+1)
		}
	}
	for _, m := range textIn.FindAllStringSubmatch(text, 8) {
		b.texts = append(b.texts, m[1], m[1]+"x")
	}
	for _, word := range wordIn.FindAllString(text, -1) {
		if _, is := spec[word]; is && !slices.Contains(b.names, word) {
			b.names = append(b.names, word)
		}
	}
	if len(b.names) == 0 {
		b.names = sortedKeys(spec)[:2]
	}
	slices.Sort(b.names)
	slices.Sort(b.ints)
	b.ints = slices.Compact(b.ints)
	return b
}

// sessions returns sessions of a form: each value near a bound alone, then count of several of them at once, and then some
// of other shapes with a few of theirs.
func (f schemaForm) sessions(r *rand.Rand, count int) []program.Session {
	_, named, _ := strings.Cut(f.text, "x?: _\n}\n")
	if named == "" {
		named = f.text
	}
	b := newBreaker(r, named, plainSpec())
	plain := func() map[string]any {
		spec := plainSpec()
		if x, ok := fittingX[f.name]; ok {
			spec["x"] = runtime.DeepCopyJSONValue(x)
		}
		return spec
	}
	specs := []map[string]any{plain()}
	for range count {
		specs = append(specs, b.other(plain(), 1+b.IntN(3)))
	}
	for _, name := range b.names {
		for _, change := range []func(map[string]any, string){drop, b.misshape, b.resize} {
			spec := plain()
			change(spec, name)
			specs = append(specs, spec)
			for range count / 10 {
				specs = append(specs, b.other(spec, 1+b.IntN(3)))
			}
		}
	}
	out := make([]program.Session, len(specs))
	for i, spec := range specs {
		out[i] = b.session(i, spec)
	}
	return out
}

func (b *breaker) session(i int, spec map[string]any) program.Session {
	s := program.Session{CR: map[string]any{
		"apiVersion": "shop.example/v1", "kind": "Shop", "spec": spec,
		"metadata": map[string]any{"name": fmt.Sprint("n", i), "namespace": "town", "uid": fmt.Sprint("u", i)},
	}}
	if i%3 == 2 {
		s.Live = map[string]map[string]map[string]any{"web": {"cm": {"kind": "ConfigMap", "data": map[string]any{"n": pickOf(b, b.ints)}}}}
	}
	return s
}

func pickOf[T any](b *breaker, of []T) T { return of[b.IntN(len(of))] }

// other returns a spec of the same shape with other values in some of the fields that the schema names.
func (b *breaker) other(spec map[string]any, fields int) map[string]any {
	out := runtime.DeepCopyJSON(spec)
	for range fields {
		name := pickOf(b, b.names)
		if v, ok := out[name]; ok {
			out[name] = b.value(v)
		}
	}
	return out
}

// value returns data with other scalars of the same kinds.
func (b *breaker) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if b.IntN(2) == 0 {
				v[key] = b.value(v[key])
			}
		}
		return v
	case []any:
		for i := range v {
			if b.IntN(2) == 0 {
				v[i] = b.value(v[i])
			}
		}
		return v
	case string:
		return pickOf(b, b.texts)
	case int64:
		return pickOf(b, b.ints)
	case float64:
		return pickOf(b, []float64{0.5, 0.25, 1.5, 1.75, -0.5, 1e300})
	case bool:
		return !v
	}
	return v
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func drop(spec map[string]any, name string) { delete(spec, name) }

// misshape puts something of another kind in the place of a field, or null.
func (b *breaker) misshape(spec map[string]any, name string) {
	others := []any{nil, "text", int64(3), 2.5, true, []any{}, map[string]any{}, []any{"x", int64(1)}, map[string]any{"a": "x"}}
	spec[name] = pickOf(b, others)
}

// resize adds or removes fields and elements of a field, or one of the spec.
func (b *breaker) resize(spec map[string]any, name string) {
	switch v := spec[name].(type) {
	case map[string]any:
		if b.IntN(3) == 0 {
			delete(v, pickOf(b, sortedKeys(v)))
			return
		}
		some := v[sortedKeys(v)[0]]
		v[pickOf(b, []string{"80", "c", "a-b", "ü", "_h", "#d", "b", "long-name", ""})] = runtime.DeepCopyJSONValue(some)
	case []any:
		if b.IntN(2) == 0 {
			spec[name] = v[:b.IntN(len(v))]
			return
		}
		spec[name] = append(slices.Clone(v), runtime.DeepCopyJSONValue(v[0]), runtime.DeepCopyJSONValue(v[0]))
	default:
		spec[pickOf(b, []string{"extra", "80", "z"})] = pickOf(b, []any{"v", int64(3), map[string]any{}})
	}
}
