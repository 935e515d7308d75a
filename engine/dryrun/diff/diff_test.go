package diff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/test/machine"
	"sigs.k8s.io/yaml"
)

// object returns the object that a text is, or nil.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

func pod(containers string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: ` + containers + `}}`
}

func configMap(data string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: ` + data + `}`
}

func secret(rest string) string {
	return `{apiVersion: v1, kind: Secret, metadata: {name: x}, ` + rest + `}`
}

func TestAChangeIsShownFieldByField(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":            {configMap(`{a: b}`), configMap(`{a: b}`), nil},
		"a value":            {configMap(`{a: b, c: d}`), configMap(`{a: e, c: d}`), []string{`data.a: "b" -> "e"`}},
		"one more, one less": {configMap(`{a: b}`), configMap(`{c: d}`), []string{`data.a: "b" -> (none)`, `data.c: (none) -> "d"`}},
		"a text that looks like a number": {
			configMap(`{a: "1"}`), strings.Replace(configMap(`{a: x}`), "x}", "1}", 2), []string{`data.a: "1" -> 1`},
		},
		"a strange key":       {configMap(`{}`), configMap(`{"a.b c": d}`), []string{`data["a.b c"]: (none) -> "d"`}},
		"a container by name": {pod(`[{name: a, image: x}, {name: b, image: w}]`), pod(`[{name: b, image: z}, {name: a, image: x}]`), []string{`spec.containers[name=b].image: "w" -> "z"`}},
		"another order": {
			pod(`[{name: a}, {name: b}]`), pod(`[{name: b}, {name: a}]`), []string{`spec.containers: (an order) -> (another order)`},
		},
		"one more container":   {pod(`[{name: a}]`), pod(`[{name: a}, {name: b, args: [x, "y<z"]}]`), []string{`spec.containers[name=b].args: (none) -> ["x","y<z"]`, `spec.containers[name=b].name: (none) -> "b"`}},
		"items without a name": {pod(`[{a: 1}, {a: 2}]`), pod(`[{a: 1}, {a: 3}]`), []string{`spec.containers[1].a: 2 -> 3`}},
		"a type":               {pod(`x`), pod(`[{name: a}]`), []string{`spec.containers: "x" -> [{"name":"a"}]`}},
		"what is empty":        {pod(`[]`), `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}`, []string{`spec.containers: [] -> (none)`}},
		"what the API server and the engine note": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, uid: a, resourceVersion: "1", generation: 1, annotations: {operetta.dev/applied: a}}, status: {a: b}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, uid: a, resourceVersion: "2", generation: 2, managedFields: [{manager: x}], annotations: {operetta.dev/applied: b, kubectl.kubernetes.io/last-applied-configuration: c}}, status: {a: c}}`,
			nil,
		},
		"a new owner": {
			configMap(`{}`), `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {operetta.dev/owner: a}}, data: {}}`, []string{`metadata.labels["operetta.dev/owner"]: (none) -> "a"`},
		},
		"a new object": {
			"", `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {operetta.dev/owner: a, app: b}, ownerReferences: [{name: y}]}, data: {a: b}}`,
			[]string{`data.a: (none) -> "b"`, `metadata.labels.app: (none) -> "b"`},
		},
		"a Secret": {
			secret(`data: {a: aGVsbG8=, b: c}, type: Opaque`), secret(`data: {a: d29ybGQ=, c: d}, type: Opaque`),
			[]string{`data.a: *** -> *** (another)`, `data.b: *** -> (none)`, `data.c: (none) -> ***`},
		},
		"a Secret that is no map": {secret(`data: {a: aGVsbG8=}`), secret(`data: aGVsbG8gd29ybGQ=`), []string{`data: *** -> *** (another)`}},
		"a Secret from text":      {"", secret(`stringData: {a: hello}`), []string{`stringData.a: (none) -> ***`}},
		"control characters": {
			configMap(`{"\u001b[2Ja": "\u001b]0;x\u0007"}`), configMap(`{"\u001b[2Ja": "a\u202eb\nc"}`), []string{`data["\x1b[2Ja"]: "\x1b]0;x\a" -> "a\u202eb\nc"`},
		},
		"a long value": {configMap(`{a: ` + strings.Repeat("x", 1000) + `}`), configMap(`{a: b}`), []string{`data.a: "` + strings.Repeat("x", 80) + `"… (1000 bytes) -> "b"`}},
		"the end of a long value": {
			configMap(`{a: ` + strings.Repeat("x", 1000) + `y}`), configMap(`{a: ` + strings.Repeat("x", 1000) + `z}`), []string{`data.a: …"xxxxxxxxxxxxxxxxxxxxy" -> …"xxxxxxxxxxxxxxxxxxxxz"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range (&diff.Mask{}).Fields(object(t, row.before), object(t, row.after)) {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatASecretHoldsIsHiddenWhereverItIs(t *testing.T) {
	t.Parallel()
	m := &diff.Mask{}
	m.Learn(object(t, secret(`data: {a: aHVudGVyMg==, short: YQ==, line: Y2FuYXJ5Cg==}, stringData: {b: "ca\"nary2"}`)))
	before := object(t, configMap(`{url: "db://x:hunter2@y", same: "hunter2", list: b}`))
	after := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {url: "db://x:ca\"nary2@y", same: canary, list: ["hunter2", {"hunter2": "ca\"nary2 aHVudGVyMg=="}], hunter2: new}}`)
	var out strings.Builder
	for _, f := range m.Fields(before, after) {
		fmt.Fprintln(&out, f)
	}
	for _, f := range m.Fields(object(t, `{kind: A, spec: {users: [{name: hunter2, roles: [{name: a}, {name: b}]}]}}`), object(t, `{kind: A, spec: {users: [{name: hunter2, roles: [{name: b}, {name: a}]}]}}`)) {
		fmt.Fprintln(&out, f)
	}
	fmt.Fprintln(&out, m.Text("it says hunter2\x1b[0m"))
	want := `data.***: (none) -> "new"
data.list: "b" -> ["***",{"***":"*** ***"}]
data.same: *** -> *** (another)
data.url: *** -> *** (another)
spec.users[name=***].roles: (an order) -> (another order)
it says ***\x1b[0m
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPartOfWhatASecretHoldsIsHidden(t *testing.T) {
	t.Parallel()
	m := &diff.Mask{}
	m.Learn(object(t, secret(`stringData: {a: '{"auths": {"r": {"password": "opensesame"}}}', b: "first-of-all\nsecond-line\n"}`)))
	want := `login with ***, line ***, in capitals ***`
	if got := m.Text("login with opensesame, line second-line, in capitals SECOND-LINE"); got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

func TestALargeObjectIsComparedInTime(t *testing.T) {
	t.Parallel()
	data := map[string]any{}
	for i := range 20_000 {
		data[fmt.Sprint("key", i)] = strings.Repeat("x", 50)
	}
	before, after := object(t, configMap(`{}`)), object(t, configMap(`{}`))
	after.Object["data"] = data
	machine.ExpectProcessorTime(t, 5*time.Second, func() {
		if got := len((&diff.Mask{}).Fields(before, after)); got != len(data) {
			t.Errorf("%d fields, want %d", got, len(data))
		}
	})
}

func TestPathsAreThoseOfAllThatSomebodyMayWriteAndHaveNoValues(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, before, after string
		want                  []string
	}{
		"a status":        {"controllers write it", `{kind: A, status: {x: 1, conditions: [{type: Ready, status: "True"}]}}`, `{kind: A, status: {x: 2, conditions: [{type: Ready, status: "False"}]}}`, []string{"status.conditions[type=Ready].status", "status.x"}},
		"metadata":        {"people write it", `{kind: A, metadata: {resourceVersion: "1", generation: 1, labels: {a: b}}}`, `{kind: A, metadata: {resourceVersion: "2", generation: 2, labels: {a: c}, finalizers: [x]}}`, []string{"metadata.finalizers", "metadata.labels.a"}},
		"a Secret":        {"its keys may be secret, too", secret(`data: {hunter2: eA==}, type: a`), secret(`data: {hunter3: eA==}, type: b`), []string{`data["***"]`, `data["***"]`, "type"}},
		"a whole Secret":  {"it has no data any more", secret(`data: {hunter2: eA==}`), secret(`type: b`), []string{`data["***"]`, "type"}},
		"another order":   {"the list is what has changed", pod(`[{name: a}, {name: b}]`), pod(`[{name: b}, {name: a}]`), []string{"spec.containers"}},
		"a list of texts": {"its items are values", `{kind: A, spec: {words: [hunter2]}}`, `{kind: A, spec: {words: [hunter3]}}`, []string{"spec.words"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range diff.Paths(object(t, row.before), object(t, row.after)) {
				got = append(got, p.Text)
			}
			if d := cmp.Diff(row.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, d)
			}
		})
	}
}
