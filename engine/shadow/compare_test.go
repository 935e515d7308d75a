package shadow

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/snapshot"
)

// header begins each package of these tests.
const header = `package site
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Site"
versions: v1: spec: #Spec
#Spec: {on: *true | bool, size: *1 | int & <=9, name?: string}
cr: spec: #Spec
live: _
#CM: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: string, ...}, data?: [string]: string}
`

// theSite is the resource of these tests.
const theSite = `{apiVersion: example.com/v1, kind: Site, metadata: {name: a, namespace: default, uid: uid-a, resourceVersion: "7"}, spec: {}, status: {phase: Running, conditions: [{type: Ready}]}}`

// cm is a ConfigMap of the resource, as another operator makes it.
func cm(name, data string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, ownerReferences: [{apiVersion: example.com/v1, kind: Site, name: a, uid: uid-a, controller: true}]}, data: %s}`, name, data)
}

// A fixture is a cluster in memory where another operator has made objects.
type fixture struct {
	t       *testing.T
	program *program.Program
	world   *dryrun.World
	from    dryrun.Source
	set     settings
}

func newFixture(t *testing.T, body string, objects ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, program: inline.Program(t, header+body)}
	f.world = dryrun.New(types.NamespacedName{}, f.program)
	f.from = snapshot.Served{World: f.world}
	f.set = settings{version: plan.Version{Program: f.program}, now: time.Unix(1e9, 0)}
	for _, text := range objects {
		u := inline.Object(t, text)
		put, err := f.world.Put(u)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "uid-a") {
			f.set.dependents = append(f.set.dependents, dependent{Ref: cluster.RefOf(put)})
		}
	}
	return f
}

// compare compares the resource that a text is.
func (f *fixture) compare(cr string) Resource {
	f.t.Helper()
	s := f.set
	s.from = f.from
	before := len(f.world.Cluster.Refs())
	out, _, err := compare(f.t.Context(), s, inline.Object(f.t, cr))
	if err != nil {
		f.t.Fatal(err)
	}
	if after := len(f.world.Cluster.Refs()); after != before {
		f.t.Errorf("there are %d objects, and were %d: a comparison has written", after, before)
	}
	return out
}

// lines returns how a resource compares, as a person reads it.
func lines(r Resource) []string {
	return strings.Split(strings.TrimSuffix(r.Text(explain.Plain), "\n"), "\n")
}

func TestAResourceIsComparedWithWhatAnotherOperatorHasMade(t *testing.T) {
	t.Parallel()
	one := `components: web: objects: c: #CM & {metadata: name: cr.metadata.name, data: {size: "\(cr.spec.size)"}}` + "\n"
	rows := map[string]struct {
		reason, body string
		objects      []string
		cr           string
		want         []string
	}{
		"all is there": {reason: "nothing differs", body: one, objects: []string{cm("a", `{size: "1", more: x}`)}, want: []string{"Site default/a  same"}},
		"an object of nobody": {
			reason: "an operator may leave no reference; whose it is, is not compared", body: one,
			objects: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {size: "1"}}`}, want: []string{"Site default/a  same"},
		},
		"an object of another controller": {
			reason: "it is compared as if it were ours, and its controller is named", body: one,
			objects: []string{strings.Replace(cm("a", `{size: "1"}`), "uid: uid-a, controller", "uid: uid-b, controller", 1)},
			want:    []string{"Site default/a  same", "  note: ConfigMap default/a belongs to Site a"},
		},
		"a field differs": {
			reason: "with both values and the manager", body: one, objects: []string{cm("a", `{size: "2"}`)},
			want: []string{"Site default/a  differs in 1 field", "  ~ web: ConfigMap a different", `      data.size: live "2", wanted "1" (manager person)`},
		},
		"another name": {
			reason: "the rendered one is missing, the other one is not rendered, and they are alike", body: one, objects: []string{cm("a-config", `{size: "1"}`)},
			want: []string{
				"Site default/a  1 object missing, 1 object not rendered", "  + web: ConfigMap a missing",
				"      ConfigMap default/a-config is alike, and not rendered: is it this one under another name?", "  - ConfigMap a-config not rendered",
			},
		},
		"another name and content": {
			reason: "there is no hint", body: one, objects: []string{cm("other", `{colour: red}`)},
			want: []string{"Site default/a  1 object missing, 1 object not rendered", "  + web: ConfigMap a missing", "  - ConfigMap other not rendered"},
		},
		"the next component reads the live object of one before": {
			reason:  "it is evaluated with what the other operator has made",
			body:    one + `components: next: objects: d: #CM & {metadata: name: "next", data: of: live.web.c.data.size}` + "\n",
			objects: []string{cm("a", `{size: "1"}`), cm("next", `{of: "1"}`)},
			want:    []string{"Site default/a  same"},
		},
		"the next component waits for a live object": {
			reason: "what it renders is not known until that exists", body: one + `components: next: objects: d: #CM & {metadata: name: "next", data: of: live.web.c.data.size}` + "\n",
			want: []string{"Site default/a  1 object missing, 1 undecided", "  + web: ConfigMap a missing", "  ? next: "},
		},
		"a requirement is not met": {
			reason: "an object that may not exist yet is not missing", body: strings.Replace(one, "objects:", `{requires: big: cr.spec.size > 3, objects:`, 1)[:len(one)+len("{requires: big: cr.spec.size > 3, ")-1] + "}\n",
			want: []string{"Site default/a  1 undecided", "  ? web: requires.big: "},
		},
		"a component is off": {
			reason: "what another operator has made for it is not rendered", body: strings.Replace(one, "web: objects:", "web: {when: cr.spec.size > 3, objects:", 1)[:len(one)+len("{when: cr.spec.size > 3, ")-1] + "}\n",
			objects: []string{cm("a", `{size: "1"}`)}, want: []string{"Site default/a  1 object not rendered", "  - ConfigMap a not rendered"},
		},
		"an invalid resource": {
			reason: "the line of the package says why", body: one, cr: strings.Replace(theSite, "spec: {}", "spec: {size: 12}", 1),
			want: []string{"Site default/a  invalid", "  ! spec.size: invalid value 12 (out of bound <=9) (site/site.cue:6)"},
		},
		"a field that the package does not have": {
			reason: "the other operator's resource has more fields", body: one, cr: strings.Replace(theSite, "spec: {}", "spec: {colour: red}", 1),
			want: []string{"Site default/a  invalid", "  ! spec.colour: unknown field"},
		},
		"a resource that is being deleted": {
			reason: "it is not compared", body: one, cr: strings.Replace(theSite, "uid: uid-a", `uid: uid-a, deletionTimestamp: "2026-01-01T00:00:00Z"`, 1),
			want: []string{"Site default/a  is being deleted, and is not compared"},
		},
		"a paused resource": {
			reason: "it is compared, and said", body: one, objects: []string{cm("a", `{size: "1"}`)},
			cr:   strings.Replace(theSite, "uid: uid-a", `uid: uid-a, annotations: {"operetta.dev/paused": "true"}`, 1),
			want: []string{"Site default/a  same, paused"},
		},
		"an object that is only created": {
			reason: "the package leaves it alone once it exists", body: one + `components: web: policy: c: apply: "createOnly"` + "\n", objects: []string{cm("a", `{size: "2"}`)},
			want: []string{"Site default/a  same"},
		},
		"the records of Helm": {
			reason: "no package renders them", body: one,
			objects: []string{cm("a", `{size: "1"}`), strings.Replace(cm("sh.helm.release.v1.a.v1", "{}"), "ConfigMap", "Secret", 1)}, want: []string{"Site default/a  same"},
		},
		"a hook": {
			reason: "it runs at the handover, and nothing is compared", objects: []string{cm("a", `{size: "1"}`)},
			body: one + `hooks: afterDeploy: migrate: objects: job: #CM & {metadata: name: "migrate"}` + "\n",
			want: []string{"Site default/a  same", "  note: the hook hooks.afterDeploy.migrate may run once the kind is handed over"},
		},
		"two resources that render the same": {
			reason: "the package is wrong", body: one + `components: web: objects: d: #CM & {metadata: name: cr.metadata.name}` + "\n", objects: []string{cm("a", `{size: "1"}`)},
			want: []string{"Site default/a  invalid", "  ! "},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if row.cr == "" {
				row.cr = theSite
			}
			got := lines(newFixture(t, row.body, row.objects...).compare(row.cr))
			for i, want := range row.want { // the rest of a message of the package is the business of others
				if i < len(got) && strings.HasPrefix(want, "  ? ") || i < len(got) && strings.HasPrefix(want, "  ! ") {
					got[i] = got[i][:min(len(want), len(got[i]))]
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestWhatOnlySecretsHaveIsNotShown(t *testing.T) {
	t.Parallel()
	const secret = "canary-of-the-shadow"
	f := newFixture(t, `
inputs: pass: {apiVersion: "v1", kind: "Secret", name: "pass"}
components: web: objects: {
	c: #CM & {metadata: name: "a", data: {copy: inputs.pass.object.data.p}}
	s: {apiVersion: "v1", kind: "Secret", metadata: name: "mine", stringData: p: "`+secret+`-rendered"}
}
`, `{apiVersion: v1, kind: Secret, metadata: {name: pass, namespace: default}, stringData: {p: `+secret+`}, data: {p: Y2FuYXJ5LW9mLXRoZS1zaGFkb3c=}}`,
		cm("a", `{copy: other}`), strings.Replace(cm("mine", `{p: Y2FuYXJ5LW9mLXRoZS1saXZl}`), "ConfigMap", "Secret", 1))
	got := f.compare(theSite)
	text := strings.Join(lines(got), "\n") + fmt.Sprintf("%+v", got)
	for _, word := range []string{"canary", "Y2FuYXJ5"} {
		if strings.Contains(text, word) {
			t.Errorf("it shows %s:\n%s", word, text)
		}
	}
	if got.fields() != 2 {
		t.Errorf("both differ, and there are %d fields:\n%s", got.fields(), text)
	}
}

// forbidding is a source in which the objects of a kind may not be read.
type forbidding struct {
	dryrun.Source

	kind string
}

func (f forbidding) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == f.kind {
		return nil, cluster.WrapError(ref, "reading", apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(ref.Kind) + "s"}, ref.Name, nil))
	}
	return f.Source.Get(ctx, ref)
}

func TestAMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ConfigMap", "Secret"} { // the message about a Secret is withheld, and the permission is not
		f := newFixture(t, `components: web: objects: c: {apiVersion: "v1", kind: "`+kind+`", metadata: name: "a"}`)
		f.from = forbidding{f.from, kind}
		got := f.compare(theSite)
		want := "the permission is missing to get " + strings.ToLower(kind) + "s in namespace default"
		if got.State != Unreadable || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, want) {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

func TestAnObjectThatIsAlsoAnInputIsCompared(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `
inputs: all: {apiVersion: "v1", kind: "ConfigMap", selector: x: "v"}
components: web: objects: c: #CM & {metadata: name: "a", data: {size: "1", n: "\(len([for o in inputs.all.objects {o}]))"}}
`, strings.Replace(cm("a", `{size: "2", n: "1"}`), "name: a, namespace: default,", "name: a, namespace: default, labels: {x: v},", 1))
	got := f.compare(theSite)
	if len(got.Objects) != 1 || got.Objects[0].Relation != Changed {
		t.Errorf("got %s", strings.Join(lines(got), "\n"))
	}
}

func TestAForgedStatusIsNotBelieved(t *testing.T) {
	t.Parallel()
	body := `components: web: objects: c: #CM & {metadata: name: "a", data: {size: "1"}}`
	for name, status := range map[string]string{
		"of another shape": `{inventory: yes, components: 7}`,
		"an inventory":     `{inventory: [{component: web, objects: [{object: c, apiVersion: v1, kind: Secret, name: stolen}]}]}`,
		"hooks":            `{hooks: [{name: x, digest: y, state: Verified}]}`,
	} {
		f := newFixture(t, body, cm("a", `{size: "1"}`))
		got := f.compare(strings.Split(theSite, ", status:")[0] + ", status: " + status + "}")
		if got.State != Same {
			t.Errorf("%s: %s", name, strings.Join(lines(got), "\n"))
		}
	}
}

func TestWhatTheEngineItselfHasMadeIsTheSame(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, header+`
components: web: objects: c: #CM & {metadata: name: "a", data: size: "1"}
components: next: {dependsOn: web: {}, objects: d: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "a", spec: {selector: matchLabels: a: "b", template: {metadata: labels: a: "b", spec: containers: [{name: "x", image: "x"}]}}}}
`)
	site := inline.Object(t, strings.Replace(strings.Split(theSite, ", status:")[0]+"}", `, uid: uid-a, resourceVersion: "7"`, "", 1))
	served, err := snapshot.Serve(t.Context(), p, site)
	if err != nil {
		t.Fatal(err)
	}
	live := served.World.Get(cluster.RefOf(site))
	got, read, err := compare(t.Context(), settings{from: served, version: plan.Version{Program: p}, now: time.Unix(1e9, 0)}, live)
	if err != nil || got.State != Same {
		t.Errorf("%v: %s", err, strings.Join(lines(got), "\n"))
	}
	if len(read.objects) != 2 {
		t.Errorf("it has read %v", read.objects)
	}
	later := metav1.Now()
	live.SetDeletionTimestamp(&later)
	if got, _, err = compare(t.Context(), settings{from: served, version: plan.Version{Program: p}}, live); err != nil || got.State != Deleting {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestIgnoredObjectsAreNamedByKindAndName(t *testing.T) {
	t.Parallel()
	ref := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "default", Name: "web-1"}
	for text, want := range map[string]bool{"Deployment": true, "deployment/web-*": true, "Deployment.apps/web-1": true, "Deployment/web": false, "Service": false} {
		i, err := ParseIgnored(text)
		if err != nil || i.matches(ref) != want {
			t.Errorf("%s: %v, %v", text, i.matches(ref), err)
		}
	}
	for _, wrong := range []string{"", "/x", "ConfigMap/", "ConfigMap/[", "*", "Config Map"} {
		if _, err := ParseIgnored(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
