package packages

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
)

// InstallCRD implements Examiner.
func (s *site) InstallCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition, mayReplace func(context.Context, string) error) error {
	if _, follows := s.Revisions.(readOnly); follows {
		s.t.Error("a process that follows installs a definition")
	}
	if s.installed == nil && s.owner != "" {
		if err := mayReplace(ctx, s.owner); err != nil {
			return err
		}
	}
	if s.installed == nil {
		s.callf("install")
		s.annotated = definition.Annotations[crd.AccountAnnotation]
	}
	return s.installed
}

// AwaitCRD implements Examiner.
func (s *site) AwaitCRD(context.Context, *apiextensionsv1.CustomResourceDefinition) error {
	return s.installed
}

func (s *site) ActAs(kind schema.GroupKind, account object.Account) {
	if account != (object.Account{}) || s.actsAs[kind] != account {
		s.callf("act for %s as %q", kind.Kind, account)
	}
	s.actsAs[kind] = account
}

func (s *site) AccountProblem(kind schema.GroupKind) string { return s.accountProblem[s.actsAs[kind]] }

func TestTheAccountOfAPackageIsOneThatItNamesItself(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason   string
		spec     map[string]any
		operator string
		want     object.Account
		wrong    bool
	}{
		"none":                     {"the operator acts as itself", map[string]any{}, "system", object.Account{}, false},
		"a name":                   {"the namespace is that of the operator", map[string]any{"serviceAccountName": "a"}, "system", object.Account{Namespace: "system", Name: "a"}, false},
		"both":                     {"another namespace has to be named", map[string]any{"serviceAccountName": "a", "serviceAccountNamespace": "team"}, "system", object.Account{Namespace: "team", Name: "a"}, false},
		"outside of a cluster":     {"no namespace is guessed", map[string]any{"serviceAccountName": "a"}, "", object.Account{}, true},
		"a namespace alone":        {"it must not mean the operator itself", map[string]any{"serviceAccountNamespace": "team"}, "system", object.Account{}, true},
		"a colon":                  {"it would be an account of another namespace", map[string]any{"serviceAccountName": "kube-system:a"}, "system", object.Account{}, true},
		"no text":                  {"it must not mean the operator itself", map[string]any{"serviceAccountName": int64(1)}, "system", object.Account{}, true},
		"beside an unknown field":  {"a newer version has the account all the same", map[string]any{"serviceAccountName": "a", "newer": true}, "system", object.Account{Namespace: "system", Name: "a"}, false},
		"beside a field of a type": {"nothing else decides about it", map[string]any{"serviceAccountName": "a", "paused": "x"}, "system", object.Account{Namespace: "system", Name: "a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.apply("p", row.spec)
			got, err := accountOf(s.get("p"), row.operator)
			if got != row.want || (err != nil) != row.wrong {
				t.Errorf("%s: it is %q (error %v)", row.reason, got, err)
			}
		})
	}
}

func TestThePackageDecidesAsWhomItIsServed(t *testing.T) {
	t.Parallel()
	as := func(spec map[string]any, name string) func(*site) {
		return func(s *site) {
			spec := runtime.DeepCopyJSON(spec) // rows run at once, and two of them have the same content
			spec["serviceAccountName"], spec["serviceAccountNamespace"] = name, "team"
			s.apply("p", spec)
		}
	}
	wrong := map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: 1\nx: 2\n"}}}
	nothing := func(*site) {}
	restart := func(s *site) { s.restart() }
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"from the beginning": {"before the controller begins", []turn{
			{as(text("Thing", "a"), "a"), "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
			{as(text("Thing", "b"), "a"), "True Served", []string{`act for Thing as "team/a"`, "install", "swap Thing"}},
		}},
		"another account": {"the controller of the first one ends first", []turn{
			{as(text("Thing", "a"), "a"), "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
			{as(text("Thing", "a"), "b"), "True Served", []string{"withdraw Thing", `act for Thing as "team/b"`, "install", "serve Thing"}},
			{func(s *site) { s.apply("p", text("Thing", "a")) }, "True Served", []string{"withdraw Thing", `act for Thing as ""`, "install", "serve Thing"}},
		}},
		"another account of a broken content": {"what was accepted last has it", []turn{
			{as(text("Thing", "a"), "a"), "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
			{as(wrong, "b"), "False PackageBroken", []string{"withdraw Thing", `act for Thing as "team/b"`, "install", "serve Thing outdated: main.cue:3: x" + sayswhy}},
		}},
		"a restart while it is broken": {"nothing runs as the process itself", []turn{
			{as(text("Thing", "a"), "a"), "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
			{as(wrong, "a"), "False PackageBroken", []string{"outdated: main.cue:3: x" + sayswhy}},
			{restart, "False PackageBroken", []string{`act for Thing as "team/a"`, "install", "serve Thing outdated: main.cue:3: x" + sayswhy}},
		}},
		"an account that is none": {"what was served goes on as it was, and nothing begins as the process itself", []turn{
			{as(text("Thing", "a"), "a"), "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
			{as(text("Thing", "a"), "a:b"), "False InvalidSpec", []string{"outdated: InvalidSpec" + sayswhy}},
			{restart, "False InvalidSpec", nil},
			{as(text("Thing", "a"), "a"), "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
		}},
		"an account that may do nothing": {"its Package says so, and until it can", []turn{
			{func(s *site) {
				s.accountProblem = map[object.Account]string{{Namespace: "team", Name: "a"}: "it may not"}
				as(text("Thing", "a"), "a")(s)
			}, "False ServiceAccountRefused", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
			{func(s *site) { s.accountProblem = nil }, "True Served", nil},
			{nothing, "True Served", nil},
		}},
		"an operator that may do nothing": {"the Package does not say that it is served", []turn{
			{func(s *site) {
				s.accountProblem = map[object.Account]string{{}: "the operator may not"}
				s.apply("p", text("Thing", "a"))
			}, "False RightsMissing", []string{"install", "serve Thing"}},
			{func(s *site) { s.accountProblem = nil }, "True Served", nil},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSite(t).play(row.reason, row.turns)
		})
	}
}

// Nobody has said yet as whom the kind is served when a plan is made after a restart in which nothing is.
func TestAContentIsPlannedAsTheAccountOfItsPackage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	apply := func(name string) {
		spec := withLimits(text("Thing", name), map[string]any{"maxDelete": int64(1)})
		spec["serviceAccountName"], spec["serviceAccountNamespace"] = "a", "team"
		s.apply("p", spec)
	}
	s.play("what was accepted last cannot be used any more", []turn{
		{func(*site) { apply("a") }, "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}},
		{func(*site) {
			s.spoilt = s.states["p"].served.Digest()
			s.restart()
			apply("b")
		}, "True Served", []string{"plan from nothing", `act for Thing as "team/a"`, "install", "serve Thing"}},
	})
	if want := (object.Account{Namespace: "team", Name: "a"}); s.plansAs != want {
		t.Errorf("it is planned as %q", s.plansAs)
	}
}

func TestTheDefinitionNamesTheAccountForWhoeverTearsDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := text("Thing", "a")
	spec["serviceAccountName"], spec["serviceAccountNamespace"] = "a", "team"
	s.apply("p", spec)
	s.play("the annotation is written", []turn{{func(*site) {}, "True Served", []string{`act for Thing as "team/a"`, "install", "serve Thing"}}})
	if s.annotated != "team/a" {
		t.Errorf("the definition names %q", s.annotated)
	}
	s.apply("p", text("Thing", "a"))
	s.play("the annotation is taken away", []turn{{func(*site) {}, "True Served", []string{"withdraw Thing", `act for Thing as ""`, "install", "serve Thing"}}})
	if s.annotated != "" {
		t.Errorf("the definition still names %q", s.annotated)
	}
}
