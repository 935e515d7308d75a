package rights

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"operetta.dev/test/harness"
)

// By default an operator serves all namespaces: nothing of what is printed is changed, and no selector keeps it from what others made. It runs
// alone, because it looks at all of that.
func TestF40F41WhatInstallPrintsByDefaultServesAPackageUntilBothAreDeleted(t *testing.T) {
	s := harness.NewEnv(t)
	home := s.Namespace + "-operator"
	account := home + "/operator"
	p := s.NewPackageObject("bydefault")
	t.Cleanup(func() { harness.RemoveForGood(t, p.Ref()) })
	printed := operetta(t, "install", harness.WritePackage(t, p.Name, p.Text(strings.ReplaceAll(shardBody, "VERSION", "a"))), "--as-packages", "--service-account", account)
	objects := objectsIn(t, printed)
	for _, u := range objects {
		if kind := u.GetKind(); kind == "ValidatingAdmissionPolicy" || kind == "ValidatingAdmissionPolicyBinding" {
			t.Cleanup(func() { harness.RemoveForGood(t, u) }) // they are about all operators
		}
	}
	applyTwice(t, printed)
	var deployment appsv1.Deployment
	decoded(t, objects, "Deployment", "operator", &deployment)
	s.ActAsAccount(account)
	from := harness.MarkAudit(t)
	// A pod knows its namespace from a file, which is not here.
	args := append(unpacked(t, deployment.Spec.Template.Spec, objects), "--leader-elect-namespace", home, harness.Everywhere)
	s.StartOperator(args...)
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s, "one", nil))
	s.ExpectResourceReady(cr)
	s.ExpectData("settings-one", "text", "a")
	s.Delete(cr)
	s.ExpectGone(cr)
	s.Delete(p.Ref())
	s.ExpectGone(p.Ref())
	requests := s.RequestsOf(from, s.User)
	t.Logf("requests: %s", requests)
	for _, e := range requests {
		// Resources whose package is missing are looked for where the operator may list them; others are not its own.
		if e.Code == 403 && e.Verb != "list" {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	compare(t, permissionsOf(rulesFor(t, objects, "operator")), usedIn(requests.Filter(allowed)),
		"create customresourcedefinitions.apiextensions.k8s.io",                     // all are installed before
		"get packagerevisions.operetta.dev", "delete packagerevisions.operetta.dev") // used when a Package has several versions
}
