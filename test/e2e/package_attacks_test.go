package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

func TestAPIServerRefusesPackagesThatCannotBeRight(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objrefused")
	source := func(source map[string]any) map[string]any { return map[string]any{"source": source} }
	inline := map[string]any{"main.cue": p.Text(note("a"))}
	configMap := map[string]any{"namespace": "x", "name": "y"}
	for name, row := range map[string]struct {
		reason string
		spec   map[string]any
	}{
		"no source":           {"there is nothing to serve", source(map[string]any{})},
		"an unknown source":   {"a typo must not be a Package without content", source(map[string]any{"git": map[string]any{"url": "x"}})},
		"two sources":         {"nobody could tell which one is served", source(map[string]any{"inline": inline, "configMap": configMap})},
		"2 MiB":               {"an object of a cluster has at most one and a half", source(map[string]any{"inline": map[string]any{"main.cue": "package x\n", "big.cue": "// " + strings.Repeat("x", 1<<20), "more.cue": "// " + strings.Repeat("x", 1<<20-10)}})},
		"a ConfigMap of \"\"": {"it names none", source(map[string]any{"configMap": map[string]any{"namespace": "", "name": ""}})},
		"an unknown policy":   {"it would be guessed", map[string]any{"source": map[string]any{"inline": inline}, "deletionPolicy": "Orphan"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := p.Object(row.spec)
			u.SetName(p.Name + "-" + harness.Unlikely.ReplaceAllString(strings.ToLower(name), "-"))
			if err := harness.Suite.Admin.Create(t.Context(), u); err == nil {
				_ = harness.Suite.Admin.Delete(t.Context(), u)
				t.Errorf("%s: it is accepted", row.reason)
			}
		})
	}
}

func TestPackagesThatAreWrongSayWhyAndHarmNoOther(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	good := s.NewPackageObject("objbystander")
	good.Apply(good.InlineBody(note("a")))
	good.Expect("Ready", "True", "Served")
	body := note("a")
	for name, row := range map[string]struct {
		reason, file, body, says, message string
	}{
		"parents":  {"it would be a file of the operator", "../outside.cue", body, "PackageBroken", "../outside.cue"},
		"absolute": {"it would be a file of the operator", "/etc/outside.cue", body, "PackageBroken", "/etc/outside.cue"},
		"cycle":    {"nothing could be applied first", "main.cue", body + "components: note: dependsOn: more: {}\ncomponents: more: dependsOn: note: {}\n", "PackageBroken", "main.cue:"},
		"nocue":    {"there is nothing to serve", "README.md", body, "PackageBroken", "no CUE files"},
		"nocode":   {"it is no operator", "main.cue", "}", "PackageBroken", "main.cue:"},
		"import":   {"a module is fetched only if cue.mod/module.cue names it", "main.cue", body + "import \"example.com/x\"\n", "PackageBroken", "main.cue:"},
	} {
		p := s.NewPackageObject("objwrong" + name)
		p.Apply(p.Inline(map[string]any{row.file: p.Text(row.body)}))
		u := p.Expect("Ready", "False", row.says, row.message)
		if err := harness.HasCondition(u, "Loaded", "False", row.says); err != nil {
			t.Errorf("%s: %s: %v", name, row.reason, err)
		}
		if harness.Field(u, "status", "digest") != nil || len(u.GetFinalizers()) > 0 {
			t.Errorf("%s: %s: something is served, or held: %v", name, row.reason, u.Object)
		}
		s.Delete(p.Ref())
		s.ExpectGone(p.Ref())
	}
	cr := s.Create(good.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	if strings.Contains(o.Log.From(0), "panic") {
		t.Error("the operator has panicked")
	}
}

func TestHangingPackageIsReplacedByARepairedOneAtOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objhang")
	hang := strings.Replace(p.Text(""), `import "operetta.dev/schemas/operator"`, "import (\n\t\"list\"\n\t\"operetta.dev/schemas/operator\"\n)", 1)
	p.Apply(p.Inline(map[string]any{"main.cue": hang + note("a") + "\n_x: list.Range(0, 3000, 1)\n_y: [for a in _x for b in _x for c in _x {a + b + c}]\nstatus: n: len(_y)\n"}))
	harness.Eventually(t, "the check to have begun", deadlineOf(3*time.Second))
	began := time.Now()
	p.Apply(p.InlineBody(note("b")))
	p.Expect("Ready", "True", "Served")
	harness.ExpectWithin(t, servedTimeout*harness.Tries/2, "the repaired content to be served", time.Since(began))
}

func TestForgedStatusAndRevisionsOfAPackageAreNotBelieved(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objforged")
	p.Apply(p.InlineBody(note("a")))
	first := p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	forged := p.Ref()
	forged.Object["status"] = map[string]any{"digest": "sha256:forged", "kind": "Secret", "group": "", "versions": []any{"v1"}, "resources": int64(0)}
	forged.SetResourceVersion(s.ExpectObject(p.Ref(), "to exist", harness.Exists).GetResourceVersion())
	if err := harness.Suite.Admin.Status().Update(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	s.ExpectObject(p.Ref(), "to say what is true again", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "digest") != harness.Field(first, "status", "digest") || harness.Field(u, "status", "kind") != "Thing" {
			return fmt.Errorf("the status is %v", u.Object["status"])
		}
		return nil
	})
	// A revision whose files are not those of its digest is not served after a restart.
	all := p.Revisions()
	if len(all) != 1 {
		t.Fatalf("there are %d revisions", len(all))
	}
	revision := all[0]
	digest := map[string]any{"spec": map[string]any{"digest": "sha256:other"}}
	if out, err := harness.Kubectl(t.Context(), "patch", "packagerevision", revision.GetName(), "--type=merge", "-p", string(harness.Encode(t, digest))); err == nil {
		t.Errorf("the digest can be changed: %s", out)
	}
	o.Stop()
	s.Patch(revision, map[string]any{"spec": map[string]any{"files": map[string]any{"objforged.cue": p.Text(note("forged"))}}})
	p.Apply(p.InlineBody("wrong"))
	o = s.StartPackageOperator()
	o.ExpectLog("a revision is not used", "digest")
	p.Expect("Ready", "False", "PackageBroken", "nothing is served")
	s.ExpectData("note-shop", "version", "a")
}

func TestPackageDoesNotTakeOverADefinitionOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := s.NewPackageObject("objforeign")
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.objforeign.example.com")
	definition.Object["spec"] = map[string]any{
		"group": "objforeign.example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
	}
	s.Create(definition)
	t.Cleanup(func() { harness.RemoveForGood(t, definition) })
	before := s.ExpectObject(definition, "to be established", func(u *unstructured.Unstructured) error {
		if harness.Condition(u, "Established")["status"] != "True" {
			return harness.ErrNotYet
		}
		return nil
	})
	s.StartPackageOperator()
	p.Apply(p.InlineBody(note("a")))
	u := p.Expect("Ready", "False", "ForeignCRD", definition.GetName())
	if err := harness.HasCondition(u, "CRDReady", "False", "ForeignCRD"); err != nil {
		t.Error(err)
	}
	if after := s.ExpectObject(definition, "to exist", harness.Exists); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("it was written")
	}
}

func TestADefinitionThatSomebodyDeletesIsInstalledAgainOrSaidToBeGone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, pkg string
		args        []string
		again       bool
	}{
		"the operator installs definitions": {"users could create no resource any more", "objgone", nil, true},
		"a person does":                     {"the operator writes none", "objgoneleft", []string{"--crds=leave"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := s.NewPackageObject(row.pkg)
			o := s.StartPackageOperator()
			p.Apply(p.InlineBody(note("a")))
			p.Expect("Ready", "True", "Served")
			if row.args != nil {
				o.Stop()
				s.StartPackageOperator(row.args...)
				p.Expect("Ready", "True", "Served")
			}
			s.ExpectResourceReady(s.Create(p.Thing(s.Env, "before", map[string]any{})))
			definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+row.pkg+".example.com")
			uid := s.ExpectObject(definition, "to exist", harness.Exists).GetUID()
			s.Delete(definition)
			if !row.again {
				u := p.Expect("Ready", "False", "CRDNotInstalled", definition.GetName())
				if err := harness.HasCondition(u, "CRDReady", "False", "CRDNotInstalled"); err != nil {
					t.Errorf("%s: %v", row.reason, err)
				}
				return
			}
			s.ExpectObject(definition, "to be installed again", func(u *unstructured.Unstructured) error {
				if u.GetUID() == uid || harness.Condition(u, "Established")["status"] != "True" {
					return harness.ErrNotYet
				}
				return nil
			})
			p.Expect("Ready", "True", "Served")
			s.ExpectResourceReady(s.Create(p.Thing(s.Env, "after", map[string]any{})))
		})
	}
}

func TestPackageGoesOverToAnotherKindOnlyWithoutResources(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objkinds")
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	p.Apply(p.Inline(map[string]any{"main.cue": strings.Replace(p.Text(note("b")), `"Thing"`, `"Gadget"`, 1)}))
	p.Expect("Ready", "False", "KindInUse", "Gadget.objkinds.example.com", s.Namespace+"/shop")
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	s.Delete(cr)
	s.ExpectFinished(cr)
	p.Expect("Ready", "True", "Served", "Gadget")
	gadget := harness.Object("objkinds.example.com/v1", "Gadget", s.Namespace, "one")
	s.Create(gadget)
	s.ExpectData("note-one", "version", "b")
}

func TestPausedPackageTakesOverNoChanges(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objpaused")
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	spec := func(version string, paused bool) map[string]any {
		return map[string]any{"source": map[string]any{"inline": map[string]any{"objpaused.cue": p.Text(note(version))}}, "paused": paused}
	}
	p.Apply(p.Object(spec("b", true)))
	p.Expect("Ready", "False", "Paused", "is served")
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	o.Stop()
	s.StartPackageOperator()
	s.Patch(cr, harness.Spec(map[string]any{"text": "d"}))
	s.ExpectData("note-shop", "text", "d")
	s.ExpectData("note-shop", "version", "a")
	p.Apply(p.Object(spec("b", false)))
	p.Expect("Ready", "True", "Served")
	s.ExpectData("note-shop", "version", "b")
}

func TestManualUpdateWaitsForTheApprovalOfItsDigest(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objmanual")
	spec := func(version, approved string) map[string]any {
		return map[string]any{"source": map[string]any{"inline": map[string]any{"objmanual.cue": p.Text(note(version))}}, "update": "Manual", "approvedDigest": approved}
	}
	p.Apply(p.Object(spec("a", "")))
	first, _ := harness.Field(p.Expect("Ready", "True", "Served"), "status", "digest").(string)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	p.Apply(p.Object(spec("b", first)))
	waits := p.Expect("Ready", "False", "AwaitingApproval", first+" is served")
	next, _ := harness.Field(waits, "status", "sourceDigest").(string)
	o.Stop()
	s.StartPackageOperator()
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	s.ExpectData("note-shop", "version", "a")
	p.Expect("Ready", "False", "AwaitingApproval", first+" is served")
	p.Apply(p.Object(spec("b", next)))
	p.Expect("Ready", "True", "Served")
	s.ExpectData("note-shop", "version", "b")
}

func TestRevisionsOfAPackageAreBounded(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objhistory")
	kept := func() (out []string) {
		for _, u := range p.Revisions() {
			if u.GetDeletionTimestamp() == nil {
				out = append(out, fmt.Sprint(harness.Field(u, "spec", "revision")))
			}
		}
		return out
	}
	for _, version := range []string{"a", "b", "c", "a"} { // the last one is a way back
		u := p.InlineBody(note(version))
		u.Object["spec"].(map[string]any)["revisionHistoryLimit"] = int64(2)
		p.Apply(u)
		p.Expect("Ready", "True", "Served")
	}
	harness.Eventually(t, "two revisions to be kept", func() error {
		if got := kept(); len(got) != 2 || !strings.Contains(fmt.Sprint(got), "4") {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}
