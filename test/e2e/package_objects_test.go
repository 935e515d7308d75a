package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/rbac"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// servedTimeout is how long a new operator may take from kubectl apply to a served kind.
const servedTimeout = 5 * time.Second

// noteBody is the body of a package with one ConfigMap. TEXT stands for its text.
const noteBody = `
#Spec: text: string | *"none"
components: note: objects: note: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "note-\(cr.metadata.name)"
	data: {text: cr.spec.text, version: "TEXT"}
}
`

func note(version string) string { return strings.ReplaceAll(noteBody, "TEXT", version) }

func TestOneFileMakesANewOperatorWorkInFiveSeconds(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	harness.Fastest(t, servedTimeout, "a new operator", func(try int) time.Duration {
		p := s.NewPackageObject(fmt.Sprint("onefile", try))
		file := filepath.Join(t.TempDir(), "package.yaml")
		text := fmt.Sprintf("apiVersion: operetta.dev/v1alpha1\nkind: Package\nmetadata:\n  name: %s\n  labels: {test: %q}\nspec:\n  source:\n    inline:\n      main.cue: |\n%s",
			p.Name, s.Namespace, indented(p.Text(note("a"))))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s.Kubectl("apply", "-f", file)
		p.Expect("Ready", "True", "Served")
		took := time.Since(began)
		cr := s.Create(p.Thing(s.Env, fmt.Sprint("shop", try), map[string]any{"text": "b"}))
		s.ExpectResourceReady(cr)
		t.Logf("served %s after kubectl apply", took)
		return took
	})
	s.ExpectData("note-shop0", "text", "b")
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("        " + line)
	}
	return b.String()
}

func TestBrokenUpdateOfAPackageChangesNothingAndSaysWhere(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objbroken")
	p.Apply(p.InlineBody(note("a")))
	good := p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	digest := harness.Field(good, "status", "digest")

	p.Apply(p.Inline(map[string]any{"objbroken.cue": p.Text(note("b")), "wrong.cue": "package objbroken\n\ncomponents: note: objects: note: data: text: cr.spec.nosuch\n"}))
	u := p.Expect("Ready", "False", "PackageBroken", "wrong.cue:3", fmt.Sprint(digest)+" is served")
	if err := harness.HasCondition(u, "Stalled", "True", "PackageBroken"); err != nil {
		t.Error(err)
	}
	if got := harness.Field(u, "status", "digest"); got != digest || harness.Field(u, "status", "lastGoodDigest") != digest || harness.Field(u, "status", "sourceDigest") == digest {
		t.Errorf("the digests are %v", u.Object["status"])
	}
	faults, _ := harness.Field(u, "status", "faults").([]any)
	if len(faults) != 1 || !strings.HasPrefix(fmt.Sprint(faults[0].(map[string]any)["position"]), "wrong.cue:3") {
		t.Errorf("the faults are %v", faults)
	}
	s.ExpectObject(cr, "to say which version serves it", func(u *unstructured.Unstructured) error {
		text, _ := harness.Condition(u, "PackageBroken")["message"].(string)
		if !harness.ContainsAll(text, []string{"wrong.cue:3", "Package objbroken"}) {
			return fmt.Errorf("the message is %q", text)
		}
		return harness.Ready(u)
	})
	// The version before goes on: it reconciles.
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	s.ExpectData("note-shop", "version", "a")

	// After a restart as well, although the content is still wrong.
	o.Stop()
	o = s.StartPackageOperator()
	o.ExpectLog("accepted last is served", "objbroken")
	s.Patch(cr, harness.Spec(map[string]any{"text": "d"}))
	s.ExpectData("note-shop", "text", "d")
	s.ExpectData("note-shop", "version", "a")
	p.Expect("Ready", "False", "PackageBroken", "wrong.cue:3", fmt.Sprint(digest)+" is served")

	p.Apply(p.InlineBody(note("e")))
	u = p.Expect("Ready", "True", "Served")
	if len(harness.Condition(u, "Stalled")) > 0 || harness.Field(u, "status", "faults") != nil {
		t.Errorf("it still says that something is wrong: %v", u.Object["status"])
	}
	s.ExpectData("note-shop", "version", "e")
	s.ExpectObject(cr, "to say nothing about its package", isNotReportedBroken)
}

func TestPackageAtRestCostsNoRequest(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objrest")
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	u := s.ExpectObject(p.Ref(), "to count its resources", func(u *unstructured.Unstructured) error {
		want := []any{map[string]any{"digest": harness.Field(u, "status", "digest"), "resources": int64(1)}}
		if diff := cmp.Diff(want, harness.Field(u, "status", "revisions")); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
	s.WaitUntilIdle()
	// Two counts later nothing was asked and nothing written.
	from := harness.MarkAudit(t)
	harness.Eventually(t, "two counts to pass", deadlineOf(25*time.Second))
	if asked := s.OperatorRequests(from); len(asked) > 0 {
		t.Errorf("at rest there are requests: %s", asked)
	}
	if after := s.ExpectObject(p.Ref(), "to exist", harness.Exists); after.GetResourceVersion() != u.GetResourceVersion() {
		t.Error("the Package was written")
	}
}

// deadlineOf returns a function that errors until some time has passed.
func deadlineOf(d time.Duration) func() error {
	at := time.Now().Add(d)
	return func() error {
		if left := time.Until(at); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	}
}

func TestDeletedPackageWaitsForItsResources(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objdelete")
	p.Apply(p.InlineBody(layeredBody))
	p.Expect("Ready", "True", "Served")
	one, two := s.Create(p.Thing(s.Env, "one", map[string]any{})), s.Create(p.Thing(s.Env, "two", map[string]any{}))
	s.ExpectResourceReady(one)
	s.ExpectResourceReady(two)
	s.Delete(p.Ref())
	p.Expect("Ready", "False", "Deleting", s.Namespace+"/one and 1 more")
	// They are served meanwhile, also after a restart.
	s.Patch(one, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectObject(s.Ref("Secret", "top-one-b"), "to exist", harness.Exists)
	o.Stop()
	o = s.StartPackageOperator()
	s.Patch(one, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectObject(s.Ref("Secret", "top-one-c"), "to exist", harness.Exists)
	s.Delete(one)
	s.ExpectFinished(one)
	p.Expect("Ready", "False", "Deleting", s.Namespace+"/two")
	s.Delete(two)
	s.ExpectFinished(two, "Secret", "ConfigMap")
	s.ExpectGone(p.Ref())
	o.ExpectLog("package withdrawn", "objdelete")

	// The kind can be served again by the same process.
	p.Apply(p.InlineBody(layeredBody))
	p.Expect("Ready", "True", "Served")
	three := s.Create(p.Thing(s.Env, "three", map[string]any{}))
	s.ExpectResourceReady(three)
	s.Delete(three)
	s.ExpectFinished(three, "Secret")
	s.Delete(p.Ref())
	s.ExpectGone(p.Ref())
}

func TestTwoSourcesOfOneKindAreRefusedWithBothNamed(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	folder := newTestPackage(t, "objtwins", note("folder"))
	s.StartPackageOperator(folder.Dir)
	cr := s.Create(folder.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	p, other := s.NewPackageObject("objtwins"), s.NewPackageObject("objtwins2")
	p.Apply(p.InlineBody(note("object")))
	p.Expect("Ready", "False", "KindTaken", folder.Dir, "Package objtwins", "Thing.objtwins.example.com")
	s.ExpectData("note-shop", "version", "folder")

	// Two Packages of one kind: the first one goes on.
	first := s.NewPackageObject("objfirst")
	first.Apply(first.InlineBody(note("first")))
	first.Expect("Ready", "True", "Served")
	other.Apply(other.Inline(map[string]any{"main.cue": first.Text(note("second"))}))
	other.Expect("Ready", "False", "KindTaken", "Package objfirst and Package objtwins2", "Thing.objfirst.example.com")
	thing := s.Create(first.Thing(s.Env, "one", map[string]any{}))
	s.ExpectResourceReady(thing)
	s.ExpectData("note-one", "version", "first")

	// The kind is free once the first one is gone.
	s.Delete(thing)
	s.ExpectFinished(thing)
	s.Delete(first.Ref())
	s.ExpectGone(first.Ref())
	other.Expect("Ready", "True", "Served")
	s.Create(first.Thing(s.Env, "two", map[string]any{}))
	s.ExpectData("note-two", "version", "second")
}

func TestContentOfAConfigMapIsServedAndSurvivesIt(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objmap")
	s.AlsoMay("which ConfigMap has the source is in a Package", harness.Rule("", []any{"get", "list", "watch"}, "configmaps"))
	p.Apply(p.Object(map[string]any{"source": map[string]any{"configMap": map[string]any{"namespace": s.Namespace, "name": "source"}}}))
	p.Expect("Ready", "False", "SourceNotFound", "ConfigMap "+s.Namespace+"/source")
	source := s.Create(s.ConfigMap("source", map[string]any{"main.cue": p.Text(note("a")), "README.md": "no CUE"}))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	began := time.Now()
	s.Patch(source, map[string]any{"data": map[string]any{"main.cue": p.Text(note("b"))}})
	s.ExpectData("note-shop", "version", "b")
	harness.ExpectWithin(t, servedTimeout*harness.Tries, "a change of the ConfigMap to take effect", time.Since(began))
	s.Delete(source)
	p.Expect("Ready", "False", "SourceNotFound", "is served")
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	s.ExpectData("note-shop", "version", "b")
}

func TestPackagesAreServedUnderThePrintedRole(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	for _, o := range rbac.Roles(nil, rbac.Plurals{}, nil, rbac.Options{OperatorNamespace: "operetta-system", ServiceAccount: "operetta", InstallsCRDs: true, PackageObjects: true}) {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		shipped := &unstructured.Unstructured{Object: fields}
		if shipped.GetKind() != "ClusterRole" {
			continue
		}
		shipped.SetName(s.Namespace)
		s.Create(shipped)
		t.Cleanup(func() { harness.RemoveForGood(t, shipped) })
		binding := harness.Object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", s.Namespace)
		binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": s.Namespace}
		binding.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": s.User}}
		s.Create(binding)
		t.Cleanup(func() { harness.RemoveForGood(t, binding) })
	}
	p := s.NewPackageObject("objrole")
	rules := append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))
	s.RestrictOperator(rules...)
	s.StartPackageOperator()
	p.Apply(p.Object(map[string]any{"source": map[string]any{"configMap": map[string]any{"namespace": s.Namespace, "name": "source"}}, "revisionHistoryLimit": int64(1)}))
	source := s.Create(s.ConfigMap("source", map[string]any{"main.cue": p.Text(note("a"))}))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	s.Patch(source, map[string]any{"data": map[string]any{"main.cue": p.Text(note("b"))}})
	s.ExpectData("note-shop", "version", "b")
	harness.Eventually(t, "the first revision to be deleted", func() error {
		if n := len(p.Revisions()); n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	s.Delete(cr)
	s.ExpectFinished(cr)
	s.Delete(p.Ref())
	s.ExpectGone(p.Ref())
}

func TestAPolicyRefusesTheDeletionOfAPackageWithResources(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	out, err := exec.CommandContext(t.Context(), harness.Suite.Operetta, "install", "--packages-from-cluster", "--operator-user", s.User).Output()
	if err != nil {
		t.Fatalf("%v%s", err, harness.StderrOf(err))
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		// The policies about statuses would refuse the operators of other tests.
		if strings.HasPrefix(u.GetName(), "operetta-deletion.") {
			s.Create(u)
			t.Cleanup(func() { harness.RemoveForGood(t, u) })
		}
	}
	s.StartPackageOperator()
	p := s.NewPackageObject("objkept")
	u := p.InlineBody(note("a"))
	u.Object["spec"].(map[string]any)["deletionPolicy"] = "Refuse"
	p.Apply(u)
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	s.ExpectObject(p.Ref(), "to count it", func(u *unstructured.Unstructured) error {
		if n := harness.Field(u, "status", "resources"); n != int64(1) {
			return fmt.Errorf("it counts %v", n)
		}
		return nil
	})
	harness.Eventually(t, "the deletion to be refused", func() error { // a policy takes effect some time after its creation
		dry := &client.DeleteOptions{DryRun: []string{"All"}}
		if err := harness.Suite.Admin.Delete(t.Context(), p.Ref(), dry); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the error is %w", err)
		}
		return nil
	})
	if err := harness.Suite.Admin.Delete(t.Context(), p.Ref()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "there are resources of its kind, 1 of them") {
		t.Errorf("the error is %v", err)
	}
	s.Delete(cr)
	s.ExpectFinished(cr)
	harness.Eventually(t, "the deletion to be allowed", func() error { return harness.Suite.Admin.Delete(t.Context(), p.Ref()) })
	s.ExpectGone(p.Ref())
}
