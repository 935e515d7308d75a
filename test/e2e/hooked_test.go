package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const hookedBody = `
#Spec: text: string | *"a"

components: web: objects: settings: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "settings"
	data: text: cr.spec.text
}
hooks: {
	afterDeploy: migrate: objects: job:  #Job & {_name: "migrate", _arg: cr.spec.text}
	beforeDelete: backup: objects: job: #Job & {_name: "backup", _arg: "all"}
}
#Job: {
	_name: string
	_arg:  string
	apiVersion: "batch/v1"
	kind:       "Job"
	metadata: name: _name
	spec: template: spec: {
		restartPolicy: "Never"
		containers: [{name: "main", image: "busybox:1", args: [_arg]}]
	}
}
`

func TestHooksRunOncePerContentAndBeforeTheFirstDeletion(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "hooked", hookedBody)
	o := s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	got := s.ExpectResourceReady(cr)
	t.Logf("components: %v", harness.Field(got, "status", "components"))
	if c := harness.Component(got, "hooks.afterDeploy.migrate"); c["state"] != "Verified" {
		t.Errorf("the status says of the hook: %v", c)
	}
	jobs := s.List("batch/v1", "Job")
	if len(jobs) != 1 || !strings.HasPrefix(jobs[0].GetName(), "migrate") || harness.Field(&jobs[0], "status", "succeeded") != int64(1) {
		t.Fatalf("there are %d Jobs: %s", len(jobs), harness.Encode(t, jobs))
	}
	// Neither a restart nor a change of another field runs the hook again.
	o.Stop()
	s.StartOperator(p.Dir)
	s.Patch(cr, harness.Annotation("example.com/poke", "1"))
	s.WaitUntilIdle()
	s.expectJobsWritten(from, 1)
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectResourceReady(cr)
	s.ExpectData("settings", "text", "b")
	s.expectJobsWritten(from, 2)

	began := s.ExpectResourceReady(cr).GetResourceVersion()
	s.Delete(cr)
	s.ExpectFinished(cr, "ConfigMap")
	s.expectNoJobs()
	s.expectJobsWritten(from, 3)
	s.expectBackupFirst(began)
}

// expectJobsWritten expects how many Jobs the operator has created since a mark.
func (s *env) expectJobsWritten(from controlplane.AuditMark, want int) {
	s.T.Helper()
	created := s.OperatorRequests(from).OfResource("jobs").Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(created) != want {
		s.T.Errorf("%d Jobs were created, not %d", len(created), want)
	}
}

func (s *env) expectNoJobs() {
	s.T.Helper()
	harness.Eventually(s.T, "the end of the Jobs", func() error {
		if left := s.List("batch/v1", "Job"); len(left) > 0 {
			return fmt.Errorf("%s is left", left[0].GetName())
		}
		return nil
	})
}

// expectBackupFirst expects the Job of the hook before deletion to have ended before the first object
// was deleted, according to the events since a resource version.
func (s *env) expectBackupFirst(since string) {
	s.T.Helper()
	ended := s.versionWhen(since, "batch/v1", "Job", func(_ watch.EventType, u *unstructured.Unstructured) bool {
		return strings.HasPrefix(u.GetName(), "backup") && harness.Condition(u, "Complete")["status"] == "True"
	})
	deleted := s.versionWhen(since, "v1", "ConfigMap", func(e watch.EventType, u *unstructured.Unstructured) bool {
		return u.GetName() == "settings" && (e == watch.Deleted || u.GetDeletionTimestamp() != nil)
	})
	if deleted < ended {
		s.T.Errorf("the backup ended at version %d, the first deletion was at %d", ended, deleted)
	}
}

// versionWhen returns the resource version of the first event of a kind, since a version, that passes a
// check.
func (s *env) versionWhen(since, apiVersion, kind string, check func(watch.EventType, *unstructured.Unstructured) bool) uint64 {
	s.T.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	w, err := harness.Suite.Admin.Watch(s.T.Context(), l, client.InNamespace(s.Namespace), &client.ListOptions{Raw: harness.WatchFrom(since)})
	if err != nil {
		s.T.Fatal(err)
	}
	defer w.Stop()
	for {
		select {
		case e, open := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			if !open || !ok {
				s.T.Fatalf("the watch of %s from version %s has ended: %v", kind, since, e.Object)
			}
			if !check(e.Type, u) {
				continue
			}
			n, err := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
			if err != nil {
				s.T.Fatal(err)
			}
			return n
		case <-time.After(harness.Timeout):
			s.T.Fatalf("no event of a %s is the one that is looked for", kind)
		}
	}
}

// failingBody has a hook that fails if the spec says so: its pod fits no node, and its deadline is one
// second.
const failingBody = `
#Spec: {text: string | *"a", broken: string | *""}

components: web: objects: settings: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "settings-\(cr.metadata.name)"
	data: text: cr.spec.text
}
hooks: {
	afterDeploy: migrate: objects: job: #Job & {_name: "migrate"}
	beforeDelete: backup: objects: job: #Job & {_name: "backup"}
}
#Job: {
	_name:      string
	apiVersion: "batch/v1"
	kind:       "Job"
	metadata: name: "\(_name)-\(cr.metadata.name)"
	spec: {
		if cr.spec.broken == _name {activeDeadlineSeconds: 1}
		template: spec: {
			if cr.spec.broken == _name {nodeSelector: nowhere: "yes"}
			restartPolicy: "Never"
			containers: [{name: "main", image: "busybox:1"}]
		}
	}
}
`

// job returns the only Job whose name begins with a name; a digest of its content follows.
func (s *env) job(name string) *unstructured.Unstructured {
	s.T.Helper()
	var found []*unstructured.Unstructured
	for _, u := range s.List("batch/v1", "Job") {
		if u.GetDeletionTimestamp() == nil && u.GetName()[:strings.LastIndex(u.GetName(), "-")] == name {
			found = append(found, &u)
		}
	}
	if len(found) != 1 {
		s.T.Fatalf("there are %d Jobs %s: %s", len(found), name, harness.Encode(s.T, found))
	}
	return found[0]
}

// expectStalled expects the condition Stalled and the output of kubectl to say that a person has to
// act, and why.
func (s *env) expectStalled(p *testPackage, name, phase, reason string) {
	s.T.Helper()
	cr, err := harness.GetOrNil(s.T.Context(), p.Thing(s.Env, name, nil))
	if err != nil || cr == nil {
		s.T.Fatalf("reading %s: %v, %v", name, cr, err)
	}
	if c := harness.Condition(cr, "Stalled"); c["status"] != "True" || c["reason"] != reason {
		s.T.Errorf("Stalled is %v", c)
	}
	shown := s.Kubectl("get", "things."+p.Name+".example.com", name, "--no-headers")
	s.T.Log(shown)
	if got := strings.Fields(shown); len(got) < 3 || got[1] != "False" || got[2] != phase {
		s.T.Errorf("kubectl get shows %q, not False and %s", shown, phase)
	}
}

func TestAFailedHookIsSeenAndRunsAgainWhenItIsChangedOrItsObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "failinghook", failingBody)
	o := s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"broken": "migrate"}))
	t.Log(s.ExpectNotReady(cr, "HookFailed", "hooks.afterDeploy.migrate: ", "DeadlineExceeded", "to run the hook again"))
	s.expectStalled(p, "shop", "Failed", "HookFailed")
	u := s.ExpectObject(cr, "to say so of the hook", func(u *unstructured.Unstructured) error {
		if c := harness.Component(u, "hooks.afterDeploy.migrate"); c["state"] != "Failed" || c["reason"] != "HookFailed" {
			return fmt.Errorf("it says %v", c)
		}
		return nil
	})
	t.Logf("status.hooks: %s", harness.Encode(t, harness.Field(u, "status", "hooks")))
	s.expectJobsWritten(from, 1)

	// Neither a restart, nor a forced reconcile, nor another change of the spec runs the hook again.
	o.Stop()
	s.StartOperator(p.Dir)
	s.Patch(cr, harness.Annotation("example.com/poke", "1"))
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("settings-shop", "text", "b")
	s.WaitUntilIdle()
	s.expectJobsWritten(from, 1)
	s.ExpectNotReady(cr, "HookFailed", "hooks.afterDeploy.migrate: ")

	// When a person deletes its Job, the hook runs again, and fails again.
	was := s.job("migrate-shop")
	s.Kubectl("delete", "job", was.GetName(), "--wait=false")
	harness.Eventually(t, "another Job", func() error {
		for _, u := range s.List("batch/v1", "Job") {
			if u.GetName() == was.GetName() && u.GetUID() != was.GetUID() {
				return nil
			}
		}
		return harness.ErrNotYet
	})
	s.ExpectNotReady(cr, "HookFailed", "hooks.afterDeploy.migrate: ", "DeadlineExceeded")
	s.WaitUntilIdle()
	s.expectJobsWritten(from, 2)

	// A hook with other content runs again.
	s.Patch(cr, harness.Spec(map[string]any{"broken": ""}))
	s.ExpectResourceReady(cr)
	s.expectJobsWritten(from, 3)
	if got := s.job("migrate-shop").GetName(); got == was.GetName() {
		t.Errorf("the Job %s has the name of another content", got)
	}
}

func TestAFailedHookBeforeDeletionHoldsItUntilAPersonActs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		act    func(s *env, cr *unstructured.Unstructured)
		jobs   int // that were written, with that after the rollout
	}{
		"skips the hooks": {"a backup may never work again", func(s *env, cr *unstructured.Unstructured) {
			s.Patch(cr, harness.Annotation("operetta.dev/skip-hooks", "true"))
		}, 2},
		"corrects the hook": {"another content is another try", func(s *env, cr *unstructured.Unstructured) {
			s.Patch(cr, harness.Spec(map[string]any{"broken": ""}))
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, "held"+strings.Fields(name)[0], failingBody)
			s.StartOperator(p.Dir, "--allow-annotations=skip-hooks")
			from := harness.MarkAudit(t)
			cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"broken": "backup"}))
			s.ExpectResourceReady(cr)
			before := s.Get("ConfigMap", "settings-shop").GetResourceVersion()
			s.Delete(cr)
			t.Log(s.ExpectNotReady(cr, "HookFailed", "hooks.beforeDelete.backup: ", "DeadlineExceeded"))
			s.expectStalled(p, "shop", "Deleting", "HookFailed")
			s.Patch(cr, harness.Annotation("example.com/poke", "1"))
			s.WaitUntilIdle()
			s.expectJobsWritten(from, 2)
			if deleted := s.OperatorRequests(from).WithVerbs("delete"); len(deleted) > 0 || s.Get("ConfigMap", "settings-shop").GetResourceVersion() != before {
				t.Errorf("%s: something was touched although the hook failed: %s", row.reason, deleted)
			}

			row.act(s, cr)
			s.ExpectFinished(cr, "ConfigMap")
			s.expectNoJobs()
			s.expectJobsWritten(from, row.jobs)
		})
	}
}
