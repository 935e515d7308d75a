package program_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/test/golden"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// canary is the value that no message may show, and no part of it.
const canary = "Zq7Kx9Vw3TbHj5Rd"

var encodedCanary = base64.StdEncoding.EncodeToString([]byte(canary))

// sources are the expressions by which a package comes to the canary.
var sources = map[string]string{
	"an input":              `inputs.tok.object.data.k`,
	"a decoded input":       `"\(base64.Decode(null, inputs.tok.object.data.k))"`,
	"an input by selector":  `inputs.toks.objects.one.data.k`,
	"a live Secret":         `live.own.secret.data.k`,
	"a rendered Secret":     `components.own.objects.secret.stringData.k`,
	"a field of the spec":   `cr.spec.name`,
	"what kubectl kept":     `inputs.tok.object.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`,
	"a literal of a Secret": `components.own.objects.secret.stringData.l`,
	"an output":             `components.own.outputs.k`,
	"a hidden field":        `_hop.k`,
	"a template":            `(#Hop & {#in: inputs.tok.object.data.k}).out`,
	"a let":                 `{let y = inputs.tok.object.data.k, let z = y, k: z}.k`,
	"a template's default":  `(#Deep & {#of: #in: inputs.tok.object.data.k}).out.out`,
	"a pattern":             `{[string]: k: inputs.tok.object.data.k, a: {}}.a.k`,
	"a computed label":      `{for k in ["k"] {(k): inputs.tok.object.data[k]}}.k`,
	"a comprehension":       `[for k, v in inputs.tok.object.data if k == "k" {v}][0]`,
}

// faulty are expressions over X that CUE has something to say about, with what it is.
var faulty = []string{
	`X + 1`, `X & "other"`, `X * "a"`, `-X`, `"\(X)-x" & "y"`, `[for c in [X] if c < 3 {c}][0]`, `strings.ToUpper(X) + 1`,
	`strings.SliceRunes(X, 0, 6) & 3`, `{(X): 1 & 2}`, `{a: {(X): b: "x" & "y"}}`, `strconv.Atoi(X)`, `[X][1] & X`, `{k: X}.k & close({a: 1})`,
	`json.Unmarshal(X)`, `{[=~"a"]: int} & {a: X}`, `*X | 3 & 4`, `time.Duration & X`, `live.own[X].y`, `cr.spec[X]`,
	`{let y = X, z: y & 1}.z`, `!X`, `X & =~"^no$"`, `X & strings.MaxRunes(2)`, `X / 2`, `(X & string) < 3`, `list.Sum([X])`,
	`strings.Split(X, "")[99]`, `regexp.FindSubmatch("(a+)(b+)", X)`, `{"a-\(X)": string} & {[string]: int, "a-\(X)": "z"}`,
}

// conditions are conditions over X.
var conditions = []string{
	`X == "x"`, `X =~ "^nothing$"`, `X != "\(X)"`, `strings.ToUpper(X) == "x"`, `X < "0"`, `X + 1 == 2`, `"\(X)" & "y" == "y"`,
	`strings.SliceRunes(X, 0, 5) == "x"`, `len(X) == 3`, `strings.ToLower(X) == cr.metadata.name`, `live.own[X].y == 3`, `[X][0] == "x"`,
	`live.own[X] != _|_`, `X == live.own.none.x`, `({k: X}).k == "x"`,
}

// imports are what the expressions need.
const imports = `
import "encoding/base64"
import "encoding/json"
import "list"
import "regexp"
import "strconv"
import "strings"
import "time"
`

// leaky is a package that has every expression in every place.
func leaky(source string) string {
	var b strings.Builder
	b.WriteString(`
_uses: [base64.Encode(null, ""), json.Marshal({}), list.MinItems, regexp.Match("a", "a"), strconv.Atoi("1"), strings.ToUpper(""), time.Second]
inputs: {
	tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
	toks: {apiVersion: "v1", kind: "Secret", selector: a: "b"}
}
_hop: {let v = inputs.tok.object.data.k, k: v}
#Hop: {#in: string, out: #in}
#Deep: {#of: {#in: string}, out: #Hop & {#in: #of.#in}}
components: own: {
	objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", stringData: {k: cr.spec.name, l: "` + canary + `"}}
	outputs: k: inputs.tok.object.data.k
}
`)
	at := func(format, x string) { fmt.Fprintf(&b, format+"\n", strings.ReplaceAll(x, "X", "("+source+")")) }
	for i, x := range faulty {
		at(fmt.Sprintf(`components: s%d: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "s", data: k: %%s}`, i), x)
		at(fmt.Sprintf(`components: m%d: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "m", data: k: %%s}`, i), x)
		at(fmt.Sprintf(`components: n%d: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: %%s}`, i), x)
		at(fmt.Sprintf(`components: h%d: {_hidden: %%s, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "h", data: k: _hidden}}`, i), x)
		at(fmt.Sprintf(`status: s%d: %%s`, i), x)
		at(fmt.Sprintf(`hooks: afterVerify: f%d: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "f", data: k: %%s}`, i), x)
	}
	for i, x := range conditions {
		at(fmt.Sprintf(`components: c%d: {let X1 = %%s, verify: ok: X1, requires: ok: X1, failed: no: X1}`, i), x)
		at(fmt.Sprintf(`components: d%d: {verify: ok: %%s}`, i), x)
		at(fmt.Sprintf(`components: w%d: when: %%s`, i), x)
		at(fmt.Sprintf(`components: e%d: dependsOn: own: check: %%s`, i), x)
		at(fmt.Sprintf(`hooks: afterDeploy: w%d: when: %%s`, i), x)
	}
	at(`requeueAfter: %s`, `X`)
	at(`inputs: named: {apiVersion: "v1", kind: "ConfigMap", name: %s}`, `X & "other"`)
	return b.String()
}

// withCanary is a session in which every secret is the canary.
func withCanary(t *testing.T) program.Session {
	t.Helper()
	s := session(t, `{name: `+canary+`}`, `{own: {secret: {apiVersion: v1, kind: Secret, metadata: {name: own}, data: {k: `+encodedCanary+`}}}}`)
	inline.Decode(t, []byte(`
tok: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: tok, annotations: {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"k\":\"`+encodedCanary+`\"}}"}}, data: {k: `+encodedCanary+`}}]}
toks: {several: true, objects: [{apiVersion: v1, kind: Secret, metadata: {name: one}, data: {k: `+encodedCanary+`}}]}
`), &s.Inputs)
	return s
}

// shown returns a part of the canary that a text shows in any form, or "".
func shown(text string) string {
	const part = 5
	text = strings.ToLower(text)
	for _, form := range []string{canary, encodedCanary} {
		form = strings.ToLower(form)
		for i := range len(form) - part + 1 {
			if strings.Contains(text, form[i:i+part]) {
				return form[i : i+part]
			}
		}
	}
	return ""
}

// loaded is the package with every expression that some source makes, without the lines
// that are wrong whatever the session.
func loaded(t *testing.T, source string) *program.Program {
	t.Helper()
	lines := strings.Split(strings.Replace(head, "\nimport ", imports+"\nimport ", 1)+leaky(source), "\n")
	for range 5 {
		p, err := program.Load(inline.Snapshot(t, strings.Join(lines, "\n")))
		if err == nil {
			return p
		}
		if part := shown(strings.ReplaceAll(err.Error(), source, "")); part != "" {
			t.Errorf("loading it shows %s: %v", part, err)
		}
		faults, _ := errors.AsType[fault.Faults](err)
		for _, f := range faults {
			lines[f.Position.Line-1] = ""
		}
	}
	t.Fatal("it cannot be loaded")
	return nil
}

func TestNoMessageShowsAnyPartOfASecret(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := evaluate(t, loaded(t, source), withCanary(t))
			said := saidBy(r)
			withheld := 0
			for line := range strings.SplitSeq(said, "\n") {
				if part := shown(strings.ReplaceAll(line, source, "")); part != "" {
					t.Errorf("it shows %s: %s", part, line)
				}
				if strings.Contains(line, "not shown") {
					withheld++
				}
				if elsewhere := !strings.Contains(name, "spec") && !strings.HasSuffix(name, "Secret"); elsewhere && strings.Contains(line, fmt.Sprintf(": is %d,", len(canary))) {
					t.Errorf("it shows how long it is: %s", line)
				}
			}
			if withheld < 10 {
				t.Errorf("of %d messages only %d show no value: do the expressions refer to it?", strings.Count(said, "\n"), withheld)
			}
		})
	}
}

// saidBy returns all texts of a rollout, without what it renders.
func saidBy(r program.Rollout) string {
	out := golden.Rollout(messagesOf(r))
	for _, c := range r.Components {
		out += strings.Join(c.MissingAt, "\n") + "\n"
	}
	for _, h := range r.Hooks {
		out += strings.Join(h.Component.MissingAt, "\n") + "\n"
	}
	return out
}

// messagesOf returns a rollout without what it renders.
func messagesOf(r program.Rollout) program.Rollout {
	r.Status = nil
	for _, c := range r.Components {
		clear(c.Objects)
	}
	for _, h := range r.Hooks {
		clear(h.Component.Objects)
	}
	return r
}

// compileWith compiles a package that is head with an import and more.
func compileWith(t *testing.T, imported, more string) *program.Program {
	t.Helper()
	p, err := program.Load(inline.Snapshot(t, strings.Replace(head, "\nimport ", "\n"+imported+"\nimport ", 1)+more))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// own are Secrets that are made of the spec, each in another way.
var own = map[string]string{
	"in place":               `components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: cr.spec.name}`,
	"of a type":              `import corev1 "operetta.dev/schemas/k8s/core/v1"` + "\n" + `components: own: objects: s: corev1.#Secret & {metadata: name: "s", stringData: k: cr.spec.name}`,
	"by a hidden field":      `_v: {k: cr.spec.name, l: cr.spec.size}, components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: _v.k}`,
	"by a template":          `#S: {#pw: string, apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: #pw}` + "\n" + `components: own: objects: s: #S & {#pw: cr.spec.name}`,
	"by a component's":       `#C: {#pw: string, objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: #pw}}` + "\n" + `components: own: #C & {#pw: cr.spec.name}`,
	"in a comprehension":     `components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: {for n in [cr.spec.name] {k: n}}}`,
	"by a let":               `let v = {k: cr.spec.name}, components: own: {let w = v.k, objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: w}}`,
	"by a nested template":   `#S: {#pw: string, apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: #pw}, #C: {#in: {#pw: string}, objects: s: #S & {#pw: #in.#pw}}` + "\n" + `components: own: #C & {#in: #pw: cr.spec.name}`,
	"by a loop over fields":  `components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: {for k, v in cr.spec if k == "name" {(k): v}}}`,
	"by a pattern":           `components: own: objects: [string]: stringData: k: cr.spec.name, components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s"}`,
	"by an alias":            `components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: _v}, _v: _w, _w: (cr).spec["name"]`,
	"by a list":              `_all: [cr.spec.name], components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: _all[0]}`,
	"by a call":              `_all: strings.ToUpper(cr.spec.name), components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: "\(_all)"}`,
	"by a computed name":     `for n in ["a", "b"] {components: "own-\(n)": objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: n, stringData: k: cr.spec.name}}`,
	"of a computed kind":     `components: own: objects: s: {apiVersion: "v1", kind: "Se\(_cret)", metadata: name: "s", stringData: k: cr.spec.name}, _cret: "cret"`,
	"that is not there":      `components: own: objects: {if cr.spec.size > 4 {s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: cr.spec.name}}}`,
	"of a hook":              `hooks: afterVerify: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: k: cr.spec.name}`,
	"that waits for another": `components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", data: k: base64.Encode(null, cr.spec.name), data: l: live.web.d.x}`,
}

func TestAFieldOfTheSpecThatASecretIsMadeOfIsNotShown(t *testing.T) {
	t.Parallel()
	for name, secret := range own {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := head
			if first, rest, ok := strings.Cut(secret, "\n"); ok && strings.HasPrefix(first, "import") {
				begin, secret = strings.Replace(head, "\nimport ", "\n"+first+"\nimport ", 1), rest
			}
			if strings.Contains(secret, "base64.") {
				begin = strings.Replace(begin, "\nimport ", "\nimport \"encoding/base64\"\nimport ", 1)
			}
			if strings.Contains(secret, "strings.") {
				begin = strings.Replace(begin, "\nimport ", "\nimport \"strings\"\nimport ", 1)
			}
			p, err := program.Load(inline.Snapshot(t, begin+strings.ReplaceAll(secret, ", components:", "\ncomponents:")+`
components: web: {
	objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c", data: x: cr.spec.name & "y"}
	verify: {
		name: cr.spec.name == "z"
		size: live.web.d.replicas >= cr.spec.size
	}
}
`))
			if err != nil {
				t.Fatal(err)
			}
			s := session(t, `{name: `+canary+`}`, `{web: {d: {replicas: 1}}}`)
			said := golden.Rollout(messagesOf(evaluate(t, p, s)))
			if part := shown(said); part != "" {
				t.Errorf("it shows %s:\n%s", part, said)
			}
			if !strings.Contains(said, "is 1, wanted >= 2") {
				t.Errorf("what has nothing to do with a secret is not said any more:\n%s", said)
			}
		})
	}
}

func TestASchemaOfASecretHidesNothingElse(t *testing.T) {
	t.Parallel()
	p := compileWith(t, `import "strings"`, `
#Spec: {kind?: "basic" | "token", name?: strings.MinRunes(10) & =~"^[a-z]+-[0-9a-f]+$"}
components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: {if cr.spec.kind == "basic" {k: cr.spec.name}}}
components: web: verify: size: live.web.d.replicas >= cr.spec.size
`)
	said := golden.Rollout(messagesOf(evaluate(t, p, session(t, `{kind: basic, name: secret-0123456789abcdef}`, `{web: {d: {replicas: 1}}}`))))
	if !strings.Contains(said, "is 1, wanted >= 2") {
		t.Error(said)
	}
}

func TestWhatASecretHasNothingToDoWithIsSaidInFull(t *testing.T) {
	t.Parallel()
	p := compile(t, `
inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
components: web: {
	objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c", data: {x: cr.metadata.name & "y", k: inputs.tok.object.data.k, l: live.web.d.none}}
	when: live.web.d.replicas > 1
	verify: {
		size: live.web.d.replicas >= cr.spec.size
		none: live.web.d.none == "x"
		keys: len(inputs.tok.object.data) == 2
		kept: inputs.tok.object.metadata.name == "x"
	}
}
status: bad: cr.metadata.name + 1
`)
	s := withCanary(t)
	inline.Decode(t, []byte(`{web: {d: {replicas: 1}}}`), &s.Live)
	said := golden.Rollout(messagesOf(evaluate(t, p, s)))
	for _, want := range []string{
		`live.web.d.replicas > 1 is false: is 1, wanted > 1`, `is 1, wanted >= 2`, `live.web.d.none is not there yet`, `is 1, wanted == 2`, `is "tok", wanted == "x"`,
		`conflicting values "corner" and "y"`, `invalid operands "corner" and 1 to '+'`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %s", want)
		}
	}
	if t.Failed() {
		t.Log(said)
	}
}

func TestANameThatIsMadeOfASecretIsNotSaid(t *testing.T) {
	t.Parallel()
	const name = `"n-\(strings.SliceRunes(inputs.tok.object.data.k, 0, 8))"`
	for what, component := range map[string]string{
		"a condition that compares nothing":   `verify: (` + name + `): list.Contains([1], 2)`,
		"a requirement that compares nothing": `requires: (` + name + `): list.Contains([1], 2)`,
		"a failure that has come":             `failed: (` + name + `): list.Contains([1], 1)`,
		"a dependency that is no component":   `dependsOn: (` + name + `): {}`,
		"a field that waits for a value":      `objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c", data: (` + name + `): live.web.c.none}`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := compileWith(t, "import \"list\"\nimport \"strings\"", `
_uses: list.MinItems
inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
inputs: toks: {apiVersion: "v1", kind: "Secret", selector: a: "b"}
components: web: {`+component+`}
`)
			said := saidBy(evaluate(t, p, withCanary(t)))
			if part := shown(said); part != "" {
				t.Errorf("it shows %s:\n%s", part, said)
			}
		})
	}
}

func TestANumberThatASecretIsMadeOfIsNotShown(t *testing.T) {
	t.Parallel()
	p := compile(t, `
#Spec: {pin?: int, port?: int}
components: own: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: {k: "\(cr.spec.pin)", p: "\(cr.spec.port)"}}
components: web: verify: {
	pin:  cr.spec.pin < 3
	part: "\(cr.spec.pin)x" =~ "^3"
	port: cr.spec.port < 4
}
`)
	said := golden.Rollout(messagesOf(evaluate(t, p, session(t, `{pin: 9012543, port: 5432}`, `{}`))))
	if strings.Contains(said, "90125") || !strings.Contains(said, "is 5432, wanted < 4") {
		t.Errorf("it says:\n%s", said)
	}
}
