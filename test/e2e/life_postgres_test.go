package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// unschedulableHook makes the Job of a hook fail: no node has the label, and its deadline is one
// second.
var unschedulableHook = map[string]any{"deadlineSeconds": 1, "nodeSelector": map[string]any{"nowhere": "yes"}}

// schedulableHook makes the same Job succeed.
var schedulableHook = map[string]any{"deadlineSeconds": 60, "nodeSelector": nil}

func TestADatabaseFromItsFirstServerToItsDeletion(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("postgres"))
	cr := s.sample("postgres")
	primary, replicas, secret := s.Ref("StatefulSet", "ledger-primary"), s.Ref("StatefulSet", "ledger-replica"), s.Ref("Secret", "ledger-credentials")
	s.live(
		step{"it is ready with one write for each object", func(s *env) {
			s.expectBudget(func() { s.Create(cr.DeepCopy()); s.ExpectResourceReady(cr) }, cr)
			if got := harness.Field(s.ExpectResourceReady(cr), "status", "host"); got != "ledger-primary."+s.Namespace+".svc" {
				s.T.Errorf("the host is %v", got)
			}
		}},
		step{"kubectl scale changes the replicas and nothing else", func(s *env) {
			for _, n := range []string{"0", "3", "2"} {
				s.expectWritten(s.expectBudget(func() {
					s.Kubectl("scale", "postgres/ledger", "--replicas="+n)
					s.ExpectResourceReady(cr)
				}, cr), "statefulsets")
			}
		}},
		step{"changed parameters roll the primary, and then the replicas", func(s *env) {
			since := s.ExpectResourceReady(cr).GetResourceVersion()
			s.expectWritten(s.expectBudget(func() {
				s.Patch(cr, harness.Spec(map[string]any{"parameters": map[string]any{"max_connections": "200"}}))
				s.ExpectResourceReady(cr)
			}, cr), "configmaps", "statefulsets", "statefulsets")
			s.expectRolledInOrder(since, primary, replicas)
		}},
		step{"a version is raised on the primary, then by the migration, then on the replicas", func(s *env) {
			since, from := s.ExpectResourceReady(cr).GetResourceVersion(), harness.MarkAudit(s.T)
			s.Patch(cr, harness.Spec(map[string]any{"version": 17}))
			s.ExpectResourceReady(cr)
			s.expectRolledInOrder(since, primary, replicas)
			s.expectMigratedBetween(since, primary, replicas)
			s.expectJobsWritten(from, 1)
		}},
		step{"a version is not taken back", func(s *env) {
			s.expectRefused(cr, harness.Spec(map[string]any{"version": 16}), "spec.version", "cannot be read by an older one")
		}},
		step{"a migration that fails holds the replicas until it is fixed", func(s *env) {
			before := s.ExpectObject(replicas, "to exist", harness.Exists).GetGeneration()
			s.Patch(cr, harness.Spec(map[string]any{"version": 18, "migration": unschedulableHook}))
			s.T.Log(s.ExpectNotReady(cr, "ObjectFailed", "migrate: ", "Job "+s.Namespace+"/ledger-migrate", "DeadlineExceeded"))
			if after := s.ExpectObject(replicas, "to exist", harness.Exists).GetGeneration(); after != before {
				s.T.Errorf("the replicas were changed before the migration, from generation %d to %d", before, after)
			}
			s.Patch(cr, harness.Spec(map[string]any{"migration": schedulableHook}))
			s.ExpectResourceReady(cr)
			s.ExpectObject(replicas, "to be of the new version", ofImage("postgres:18"))
		}},
		step{"what somebody changes by hand is as before, but for the password", func(s *env) {
			s.expectUndone(s.Ref("ConfigMap", "ledger-parameters"), map[string]any{"data": map[string]any{"postgresql.conf": "fsync = off"}})
			s.expectUndone(primary, harness.Spec(map[string]any{"replicas": 2}))
			s.expectUndone(replicas, harness.Spec(map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"databases.example.com/parameters": "none"}}}}))
			s.Patch(secret, map[string]any{"data": map[string]any{"password": "bWluZQ=="}})
			s.ExpectResourceReady(cr)
		}},
		step{"what somebody deletes by hand is back", func(s *env) {
			for _, u := range []*unstructured.Unstructured{primary, replicas, s.Ref("Service", "ledger-primary"), s.Ref("ConfigMap", "ledger-parameters")} {
				s.expectRestored(u)
			}
			s.ExpectResourceReady(cr)
		}},
		step{"a last backup that fails holds the deletion until somebody does without", func(s *env) {
			s.Patch(cr, harness.Spec(map[string]any{"backup": unschedulableHook}))
			s.ExpectResourceReady(cr)
			s.Delete(cr)
			s.T.Log(s.ExpectNotReady(cr, "HookFailed", "hooks.beforeDelete.backup: ", "DeadlineExceeded"))
			s.ExpectObject(primary, "to be held", harness.Exists)
			s.Patch(cr, harness.Spec(map[string]any{"backup": map[string]any{"enabled": false}}))
			s.ExpectGone(cr)
			for _, u := range []*unstructured.Unstructured{primary, replicas, s.Ref("Service", "ledger-primary"), s.Ref("ConfigMap", "ledger-parameters")} {
				s.ExpectGone(u)
			}
			s.expectNoJobs()
		}},
		step{"its password is there for one of the same name, which leaves in order after a backup", func(s *env) {
			kept := s.ExpectObject(secret, "to be kept", harness.Exists)
			s.Create(cr.DeepCopy())
			since := s.ExpectResourceReady(cr).GetResourceVersion()
			if now := s.ExpectObject(secret, "to exist", harness.Exists); now.GetUID() != kept.GetUID() || harness.Field(now, "data", "password") != "bWluZQ==" {
				s.T.Error("the password is another")
			}
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr}, secret)
			s.expectBefore(order, "statefulsets ledger-replica", "jobs ledger-migrate", "statefulsets ledger-primary", "configmaps ledger-parameters")
			s.expectNoJobs()
			s.expectEndedBefore(since, "ledger-backup", replicas)
		}},
	)
}

// ofImage returns a check of the image of the first container.
func ofImage(image string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		containers, _ := harness.Field(u, "spec", "template", "spec", "containers").([]any)
		if got := containers[0].(map[string]any)["image"]; got != image {
			return fmt.Errorf("it is of %v, not of %s", got, image)
		}
		return nil
	}
}

// versionOf returns the resource version of the first event of an object, since a version, that passes
// a check.
func (s *env) versionOf(since string, u *unstructured.Unstructured, check func(watch.EventType, *unstructured.Unstructured) bool) uint64 {
	s.T.Helper()
	return s.versionWhen(since, u.GetAPIVersion(), u.GetKind(), func(e watch.EventType, got *unstructured.Unstructured) bool {
		return got.GetName() == u.GetName() && check(e, got)
	})
}

// changed reports whether the spec of a StatefulSet is newer than its controller has observed.
func changed(_ watch.EventType, u *unstructured.Unstructured) bool {
	return harness.Field(u, "status", "observedGeneration") != u.GetGeneration()
}

// rolled returns a check that a StatefulSet with a newer generation is rolled out.
func rolled(generation int64) func(watch.EventType, *unstructured.Unstructured) bool {
	return func(_ watch.EventType, u *unstructured.Unstructured) bool {
		wanted := harness.Field(u, "spec", "replicas")
		return u.GetGeneration() >= generation && harness.Field(u, "status", "observedGeneration") == u.GetGeneration() &&
			harness.Field(u, "status", "updatedReplicas") == wanted && harness.Field(u, "status", "availableReplicas") == wanted
	}
}

// isRolled returns nil if the rollout of a StatefulSet is complete.
func isRolled(u *unstructured.Unstructured) error {
	if !rolled(0)("", u) {
		return harness.ErrNotYet
	}
	return nil
}

// expectRolledInOrder expects that one StatefulSet was rolled out since a version before
// another was changed.
func (s *env) expectRolledInOrder(since string, first, then *unstructured.Unstructured) {
	s.T.Helper()
	generation := s.ExpectObject(first, "to exist", harness.Exists).GetGeneration()
	if over, next := s.versionOf(since, first, rolled(generation)), s.versionOf(since, then, changed); over > next {
		s.T.Errorf("%s was rolled out at version %d, %s changed at %d", first.GetName(), over, then.GetName(), next)
	}
}

// expectMigratedBetween expects that the migration of a version began after one
// StatefulSet was rolled out and ended before another was changed.
func (s *env) expectMigratedBetween(since string, first, then *unstructured.Unstructured) {
	s.T.Helper()
	generation := s.ExpectObject(first, "to exist", harness.Exists).GetGeneration()
	began := s.versionOf(since, s.Ref("Job", "ledger-migrate"), func(e watch.EventType, _ *unstructured.Unstructured) bool { return e == watch.Added })
	if over := s.versionOf(since, first, rolled(generation)); over > began {
		s.T.Errorf("%s was rolled out at version %d, the migration began at %d", first.GetName(), over, began)
	}
	s.expectEndedBefore(since, "ledger-migrate", then)
}

// expectEndedBefore expects that a Job, which may end in a digest, was complete since a
// version before a StatefulSet was changed or deleted.
func (s *env) expectEndedBefore(since, job string, then *unstructured.Unstructured) {
	s.T.Helper()
	ended := s.versionWhen(since, "batch/v1", "Job", func(_ watch.EventType, u *unstructured.Unstructured) bool {
		return strings.HasPrefix(u.GetName(), job) && harness.Condition(u, "Complete")["status"] == "True"
	})
	next := s.versionOf(since, then, func(e watch.EventType, u *unstructured.Unstructured) bool {
		return e == watch.Deleted || u.GetDeletionTimestamp() != nil || changed(e, u)
	})
	if ended > next {
		s.T.Errorf("the Job %s was complete at version %d, %s touched at %d", job, ended, then.GetName(), next)
	}
}

func TestADatabaseWithTheSecretOfSomebodyElseWaitsForIt(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(fixture("postgres"))
	cr := s.sample("postgres")
	cr.Object["spec"] = map[string]any{"credentials": map[string]any{"secretName": "vault"}}
	s.Create(cr.DeepCopy())
	s.T.Log(s.ExpectNotReady(cr, "WaitingForRequirement", "primary: ", "requires.password"))
	if u, err := s.Lookup("StatefulSet", "ledger-primary"); u != nil || err != nil {
		t.Errorf("the primary exists without a password (error %v)", err)
	}
	vault := s.Ref("Secret", "vault")
	vault.Object["stringData"] = map[string]any{"password": "correct-horse"}
	s.Create(vault.DeepCopy())
	s.ExpectResourceReady(cr)
	if u, err := s.Lookup("Secret", "ledger-credentials"); u != nil || err != nil {
		t.Errorf("there is a password of its own as well (error %v)", err)
	}

	// The Secret is deleted: the database keeps running, and its objects are repaired.
	before := s.ExpectObject(s.Ref("StatefulSet", "ledger-primary"), "to exist", harness.Exists)
	s.Delete(vault)
	s.ExpectNotReady(cr, "WaitingForRequirement", "primary: ", "requires.password")
	s.expectUndone(s.Ref("StatefulSet", "ledger-primary"), harness.Spec(map[string]any{"replicas": 2}))
	if after := s.ExpectObject(s.Ref("StatefulSet", "ledger-primary"), "to exist", harness.Exists); after.GetUID() != before.GetUID() {
		t.Error("the primary is another")
	}
	from := harness.MarkAudit(t)
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
	created := s.OperatorRequests(from).Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(created.OfResource("jobs")) != 1 {
		t.Errorf("there was no backup: %s", created)
	}
	for _, text := range []string{"correct-horse", "Y29ycmVjdC1ob3JzZQ"} {
		if strings.Contains(s.Operator.Log.From(0), text) {
			t.Errorf("the log has the password as %s", text)
		}
	}
}

func TestADatabaseWhoseOperatorIsKilledIsWholeAndIsSavedOnceBeforeItGoes(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	from := harness.MarkAudit(t)
	s.expectSurvived(s.sample("postgres"), 6, 2, []*unstructured.Unstructured{s.Ref("Secret", "ledger-credentials")}, fixture("postgres"))
	s.expectNoJobs()
	s.expectJobsWritten(from, 2)
}

// TestADatabaseWhoseOperatorIsKilledInAnUpgradeMigratesOnce: at that time the Job of the old version is
// deleted, and that of the new version does not exist yet.
func TestADatabaseWhoseOperatorIsKilledInAnUpgradeMigratesOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("postgres"))
	cr := s.sample("postgres")
	s.Create(cr.DeepCopy())
	since, from := s.ExpectResourceReady(cr).GetResourceVersion(), harness.MarkAudit(t)
	s.Operator.Kill()
	s.killDuring(4, func() { s.Patch(cr, harness.Spec(map[string]any{"version": 17})) }, fixture("postgres"))
	s.ExpectResourceReady(cr)
	primary, replicas := s.Ref("StatefulSet", "ledger-primary"), s.Ref("StatefulSet", "ledger-replica")
	s.ExpectObject(s.Ref("Job", "ledger-migrate"), "to be of the new version", ofImage("postgres:17"))
	s.ExpectObject(replicas, "to be of the new version", ofImage("postgres:17"))
	s.expectRolledInOrder(since, primary, replicas)
	s.expectMigratedBetween(since, primary, replicas)
	s.expectJobsWritten(from, 1)
}

func TestADatabaseThatIsGivenAnotherSecretKeepsItsOwn(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(fixture("postgres"))
	cr := s.sample("postgres")
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	own := s.ExpectObject(s.Ref("Secret", "ledger-credentials"), "to exist", harness.Exists)
	vault := s.Ref("Secret", "vault")
	vault.Object["stringData"] = map[string]any{"password": "correct-horse"}
	s.Create(vault)
	for _, credentials := range []any{map[string]any{"secretName": "vault"}, nil} {
		s.Patch(cr, harness.Spec(map[string]any{"credentials": credentials}))
		s.ExpectResourceReady(cr)
		if now := s.ExpectObject(own, "to be kept", harness.Exists); now.GetUID() != own.GetUID() || !cmp.Equal(harness.Field(now, "data"), harness.Field(own, "data")) {
			t.Errorf("with the credentials %v, its own Secret is another", credentials)
		}
	}
	s.expectNothingLeft([]*unstructured.Unstructured{cr}, own)
	s.ExpectObject(vault, "to be left alone", harness.Exists)
}

func TestAVolumeThatNobodyProvidesIsNamedByWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("postgres"))
	cr := s.sample("postgres")
	cr.Object["spec"] = map[string]any{"storage": map[string]any{"className": "none"}, "replicas": int64(0), "backup": map[string]any{"enabled": false}}
	s.Create(cr.DeepCopy())
	t.Log(s.ExpectNotReady(cr, "NotReady", "primary: ", "StatefulSet "+s.Namespace+"/ledger-primary", "PersistentVolumeClaim", "data-ledger-primary-0"))
	s.expectFewRequests()
	s.expectNothingLeft([]*unstructured.Unstructured{cr}, s.Ref("Secret", "ledger-credentials"))
}
