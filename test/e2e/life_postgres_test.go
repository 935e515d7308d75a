package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"operetta.dev/test/controlplane"
)

// nowhere is a Job's run that fails: no node has the label, and it has a second.
var nowhere = map[string]any{"deadlineSeconds": 1, "nodeSelector": map[string]any{"nowhere": "yes"}}

// somewhere is the same run mended.
var somewhere = map[string]any{"deadlineSeconds": 60, "nodeSelector": nil}

func TestADatabaseFromItsFirstServerToItsDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("postgres"))
	cr := s.sample("postgres")
	primary, replicas, secret := s.ref("StatefulSet", "ledger-primary"), s.ref("StatefulSet", "ledger-replica"), s.ref("Secret", "ledger-credentials")
	s.live(
		step{"it is ready with one write for each object", func(s *site) {
			s.expectBudget(func() { s.create(cr.DeepCopy()); s.expectAllReady(cr) }, cr)
			if got := field(s.expectAllReady(cr), "status", "host"); got != "ledger-primary."+s.namespace+".svc" {
				s.t.Errorf("the host is %v", got)
			}
		}},
		step{"kubectl scale changes the replicas and nothing else", func(s *site) {
			for _, n := range []string{"0", "3", "2"} {
				s.expectWritten(s.expectBudget(func() {
					s.kubectl("scale", "postgres/ledger", "--replicas="+n)
					s.expectAllReady(cr)
				}, cr), "statefulsets")
			}
		}},
		step{"changed parameters roll the primary, and then the replicas", func(s *site) {
			since := s.expectAllReady(cr).GetResourceVersion()
			s.expectWritten(s.expectBudget(func() {
				s.patch(cr, spec(map[string]any{"parameters": map[string]any{"max_connections": "200"}}))
				s.expectAllReady(cr)
			}, cr), "configmaps", "statefulsets", "statefulsets")
			s.expectRolledInOrder(since, primary, replicas)
		}},
		step{"a version is raised on the primary, then by the migration, then on the replicas", func(s *site) {
			since, from := s.expectAllReady(cr).GetResourceVersion(), mark(s.t)
			s.patch(cr, spec(map[string]any{"version": 17}))
			s.expectAllReady(cr)
			s.expectRolledInOrder(since, primary, replicas)
			s.expectMigratedBetween(since, primary, replicas)
			s.expectJobsWritten(from, 1)
		}},
		step{"a version is not taken back", func(s *site) {
			s.expectRefused(cr, spec(map[string]any{"version": 16}), "spec.version", "cannot be read by an older one")
		}},
		step{"a migration that fails holds the replicas until it is mended", func(s *site) {
			before := s.expectThat(replicas, "to exist", exists).GetGeneration()
			s.patch(cr, spec(map[string]any{"version": 18, "migration": nowhere}))
			s.t.Log(s.expectNotReady(cr, "ObjectFailed", "migrate: ", "Job "+s.namespace+"/ledger-migrate", "DeadlineExceeded"))
			if after := s.expectThat(replicas, "to exist", exists).GetGeneration(); after != before {
				s.t.Errorf("the replicas were changed before the migration, from generation %d to %d", before, after)
			}
			s.patch(cr, spec(map[string]any{"migration": somewhere}))
			s.expectAllReady(cr)
			s.expectThat(replicas, "to be of the new version", ofImage("postgres:18"))
		}},
		step{"what somebody changes by hand is as before, but for the password", func(s *site) {
			s.expectUndone(s.ref("ConfigMap", "ledger-parameters"), map[string]any{"data": map[string]any{"postgresql.conf": "fsync = off"}})
			s.expectUndone(primary, spec(map[string]any{"replicas": 2}))
			s.expectUndone(replicas, spec(map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"databases.example.com/parameters": "none"}}}}))
			s.patch(secret, map[string]any{"data": map[string]any{"password": "bWluZQ=="}})
			s.expectAllReady(cr)
		}},
		step{"what somebody deletes by hand is back", func(s *site) {
			for _, u := range []*unstructured.Unstructured{primary, replicas, s.ref("Service", "ledger-primary"), s.ref("ConfigMap", "ledger-parameters")} {
				s.expectRestored(u)
			}
			s.expectAllReady(cr)
		}},
		step{"a last backup that fails holds the deletion until somebody does without", func(s *site) {
			s.patch(cr, spec(map[string]any{"backup": nowhere}))
			s.expectAllReady(cr)
			s.delete(cr)
			s.t.Log(s.expectNotReady(cr, "HookFailed", "hooks.beforeDelete.backup: ", "DeadlineExceeded"))
			s.expectThat(primary, "to be held", exists)
			s.patch(cr, spec(map[string]any{"backup": map[string]any{"enabled": false}}))
			s.expectGone(cr)
			for _, u := range []*unstructured.Unstructured{primary, replicas, s.ref("Service", "ledger-primary"), s.ref("ConfigMap", "ledger-parameters")} {
				s.expectGone(u)
			}
			s.expectNoJobs()
		}},
		step{"its password is there for one of the same name, which leaves in order after a backup", func(s *site) {
			kept := s.expectThat(secret, "to be kept", exists)
			s.create(cr.DeepCopy())
			since := s.expectAllReady(cr).GetResourceVersion()
			if now := s.expectThat(secret, "to exist", exists); now.GetUID() != kept.GetUID() || field(now, "data", "password") != "bWluZQ==" {
				s.t.Error("the password is another")
			}
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr}, secret)
			s.expectBefore(order, "statefulsets ledger-replica", "jobs ledger-migrate", "statefulsets ledger-primary", "configmaps ledger-parameters")
			s.expectNoJobs()
			s.expectEndedBefore(since, "ledger-backup", replicas)
		}},
	)
}

// ofImage returns a check of what the first container of the pods of an object is.
func ofImage(image string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		containers, _ := field(u, "spec", "template", "spec", "containers").([]any)
		if got := containers[0].(map[string]any)["image"]; got != image {
			return fmt.Errorf("it is of %v, not of %s", got, image)
		}
		return nil
	}
}

// versionOf returns the version of the first event about one object since a version that
// passes a check.
func (s *site) versionOf(since string, u *unstructured.Unstructured, check func(watch.EventType, *unstructured.Unstructured) bool) uint64 {
	s.t.Helper()
	return s.versionWhen(since, u.GetAPIVersion(), u.GetKind(), func(e watch.EventType, got *unstructured.Unstructured) bool {
		return got.GetName() == u.GetName() && check(e, got)
	})
}

// changed tells that the spec of a StatefulSet is newer than what its controller has seen.
func changed(_ watch.EventType, u *unstructured.Unstructured) bool {
	return field(u, "status", "observedGeneration") != u.GetGeneration()
}

// rolled returns a check that a StatefulSet of a newer generation is rolled out.
func rolled(generation int64) func(watch.EventType, *unstructured.Unstructured) bool {
	return func(_ watch.EventType, u *unstructured.Unstructured) bool {
		wanted := field(u, "spec", "replicas")
		return u.GetGeneration() >= generation && field(u, "status", "observedGeneration") == u.GetGeneration() &&
			field(u, "status", "updatedReplicas") == wanted && field(u, "status", "availableReplicas") == wanted
	}
}

// isRolled is the check of a StatefulSet whose rollout is over.
func isRolled(u *unstructured.Unstructured) error {
	if !rolled(0)("", u) {
		return errNotYet
	}
	return nil
}

// expectRolledInOrder expects that one StatefulSet was rolled out since a version before
// another was changed.
func (s *site) expectRolledInOrder(since string, first, then *unstructured.Unstructured) {
	s.t.Helper()
	generation := s.expectThat(first, "to exist", exists).GetGeneration()
	if over, next := s.versionOf(since, first, rolled(generation)), s.versionOf(since, then, changed); over > next {
		s.t.Errorf("%s was rolled out at version %d, %s changed at %d", first.GetName(), over, then.GetName(), next)
	}
}

// expectMigratedBetween expects that the migration of a version began after one
// StatefulSet was rolled out and ended before another was changed.
func (s *site) expectMigratedBetween(since string, first, then *unstructured.Unstructured) {
	s.t.Helper()
	generation := s.expectThat(first, "to exist", exists).GetGeneration()
	began := s.versionOf(since, s.ref("Job", "ledger-migrate"), func(e watch.EventType, _ *unstructured.Unstructured) bool { return e == watch.Added })
	if over := s.versionOf(since, first, rolled(generation)); over > began {
		s.t.Errorf("%s was rolled out at version %d, the migration began at %d", first.GetName(), over, began)
	}
	s.expectEndedBefore(since, "ledger-migrate", then)
}

// expectEndedBefore expects that a Job, which may end in a digest, was complete since a
// version before a StatefulSet was changed or deleted.
func (s *site) expectEndedBefore(since, job string, then *unstructured.Unstructured) {
	s.t.Helper()
	ended := s.versionWhen(since, "batch/v1", "Job", func(_ watch.EventType, u *unstructured.Unstructured) bool {
		return strings.HasPrefix(u.GetName(), job) && condition(u, "Complete")["status"] == "True"
	})
	next := s.versionOf(since, then, func(e watch.EventType, u *unstructured.Unstructured) bool {
		return e == watch.Deleted || u.GetDeletionTimestamp() != nil || changed(e, u)
	})
	if ended > next {
		s.t.Errorf("the Job %s was complete at version %d, %s touched at %d", job, ended, then.GetName(), next)
	}
}

func TestADatabaseWithTheSecretOfSomebodyElseWaitsForIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("postgres"))
	cr := s.sample("postgres")
	cr.Object["spec"] = map[string]any{"credentials": map[string]any{"secretName": "vault"}}
	s.create(cr.DeepCopy())
	s.t.Log(s.expectNotReady(cr, "WaitingForRequirement", "primary: ", "requires.password"))
	if u, err := s.find("StatefulSet", "ledger-primary"); u != nil || err != nil {
		t.Errorf("the primary exists without a password (error %v)", err)
	}
	vault := s.ref("Secret", "vault")
	vault.Object["stringData"] = map[string]any{"password": "correct-horse"}
	s.create(vault.DeepCopy())
	s.expectAllReady(cr)
	if u, err := s.find("Secret", "ledger-credentials"); u != nil || err != nil {
		t.Errorf("there is a password of its own as well (error %v)", err)
	}

	// The Secret goes: what runs goes on, and is repaired.
	before := s.expectThat(s.ref("StatefulSet", "ledger-primary"), "to exist", exists)
	s.delete(vault)
	s.expectNotReady(cr, "WaitingForRequirement", "primary: ", "requires.password")
	s.expectUndone(s.ref("StatefulSet", "ledger-primary"), spec(map[string]any{"replicas": 2}))
	if after := s.expectThat(s.ref("StatefulSet", "ledger-primary"), "to exist", exists); after.GetUID() != before.GetUID() {
		t.Error("the primary is another")
	}
	from := mark(t)
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
	created := s.operatorRequests(from).writes().only(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(created.about("jobs")) != 1 {
		t.Errorf("there was no backup: %s", created)
	}
	for _, text := range []string{"correct-horse", "Y29ycmVjdC1ob3JzZQ"} {
		if strings.Contains(s.operator.log.from(0), text) {
			t.Errorf("the log has the password as %s", text)
		}
	}
}

func TestADatabaseWhoseOperatorIsKilledIsWholeAndIsSavedOnceBeforeItGoes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	from := mark(t)
	s.expectSurvived(s.sample("postgres"), 6, 2, []*unstructured.Unstructured{s.ref("Secret", "ledger-credentials")}, fixture("postgres"))
	s.expectNoJobs()
	s.expectJobsWritten(from, 2)
}

// TestADatabaseWhoseOperatorIsKilledInAnUpgradeMigratesOnce: the Job of the older version
// is gone by then, and that of the newer one is not there.
func TestADatabaseWhoseOperatorIsKilledInAnUpgradeMigratesOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("postgres"))
	cr := s.sample("postgres")
	s.create(cr.DeepCopy())
	since, from := s.expectAllReady(cr).GetResourceVersion(), mark(t)
	s.operator.kill()
	s.dying(4, func() { s.patch(cr, spec(map[string]any{"version": 17})) }, fixture("postgres"))
	s.expectAllReady(cr)
	primary, replicas := s.ref("StatefulSet", "ledger-primary"), s.ref("StatefulSet", "ledger-replica")
	s.expectThat(s.ref("Job", "ledger-migrate"), "to be of the new version", ofImage("postgres:17"))
	s.expectThat(replicas, "to be of the new version", ofImage("postgres:17"))
	s.expectRolledInOrder(since, primary, replicas)
	s.expectMigratedBetween(since, primary, replicas)
	s.expectJobsWritten(from, 1)
}

func TestADatabaseThatIsGivenAnotherSecretKeepsItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("postgres"))
	cr := s.sample("postgres")
	s.create(cr.DeepCopy())
	s.expectAllReady(cr)
	own := s.expectThat(s.ref("Secret", "ledger-credentials"), "to exist", exists)
	vault := s.ref("Secret", "vault")
	vault.Object["stringData"] = map[string]any{"password": "correct-horse"}
	s.create(vault)
	for _, credentials := range []any{map[string]any{"secretName": "vault"}, nil} {
		s.patch(cr, spec(map[string]any{"credentials": credentials}))
		s.expectAllReady(cr)
		if now := s.expectThat(own, "to be kept", exists); now.GetUID() != own.GetUID() || !cmp.Equal(field(now, "data"), field(own, "data")) {
			t.Errorf("with the credentials %v, its own Secret is another", credentials)
		}
	}
	s.expectNothingLeft([]*unstructured.Unstructured{cr}, own)
	s.expectThat(vault, "to be left alone", exists)
}

func TestAVolumeThatNobodyProvidesIsNamedByWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("postgres"))
	cr := s.sample("postgres")
	cr.Object["spec"] = map[string]any{"storage": map[string]any{"className": "none"}, "replicas": int64(0), "backup": map[string]any{"enabled": false}}
	s.create(cr.DeepCopy())
	t.Log(s.expectNotReady(cr, "NotReady", "primary: ", "StatefulSet "+s.namespace+"/ledger-primary", "PersistentVolumeClaim", "data-ledger-primary-0"))
	s.expectFewRequests()
	s.expectNothingLeft([]*unstructured.Unstructured{cr}, s.ref("Secret", "ledger-credentials"))
}
