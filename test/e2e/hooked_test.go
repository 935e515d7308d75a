package e2e

import (
	"fmt"
	"strings"
	"testing"

	"operetta.dev/test/controlplane"
)

const hooked = `
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
	s := newSite(t)
	p := newSmall(t, "hooked", hooked)
	o := s.operate(p.dir)
	from := mark(t)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	got := s.expectAllReady(cr)
	t.Logf("components: %v", field(got, "status", "components"))
	if c := component(got, "hooks.afterDeploy.migrate"); c["state"] != "Verified" {
		t.Errorf("the status says of the hook: %v", c)
	}
	jobs := s.list("batch/v1", "Job")
	if len(jobs) != 1 || !strings.HasPrefix(jobs[0].GetName(), "migrate") || field(&jobs[0], "status", "succeeded") != int64(1) {
		t.Fatalf("there are %d Jobs: %s", len(jobs), encode(t, jobs))
	}
	// Nothing runs it again: neither a restart, nor a change of something else.
	o.stop()
	s.operate(p.dir)
	s.patch(cr, annotation("example.com/poke", "1"))
	s.settle()
	s.expectJobsWritten(from, 1)
	s.patch(cr, spec(map[string]any{"text": "b"}))
	s.expectAllReady(cr)
	s.expectData("settings", "text", "b")
	s.expectJobsWritten(from, 2)

	began := mark(t)
	s.delete(cr)
	s.expectFinished(cr, "ConfigMap")
	s.expectNoJobs()
	s.expectJobsWritten(from, 3)
	s.expectBackupFirst(began)
}

// expectJobsWritten expects how many Jobs the operator has created since a mark.
func (s *site) expectJobsWritten(from controlplane.AuditMark, want int) {
	s.t.Helper()
	created := s.operatorRequests(from).about("jobs").verbs("create", "patch").only(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(created) != want {
		s.t.Errorf("%d Jobs were created, not %d", len(created), want)
	}
}

func (s *site) expectNoJobs() {
	s.t.Helper()
	eventually(s.t, "the end of the Jobs", func() error {
		if left := s.list("batch/v1", "Job"); len(left) > 0 {
			return fmt.Errorf("%s is left", left[0].GetName())
		}
		return nil
	})
}

// expectBackupFirst expects the Job before deletion to have ended before the first
// object was deleted.
func (s *site) expectBackupFirst(from controlplane.AuditMark) {
	s.t.Helper()
	all := s.requestsOf(from).only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.namespace })
	ended, deleted := -1, -1
	for i, e := range all {
		if e.Resource == "jobs" && e.Subresource == "status" && strings.HasPrefix(e.Name, "backup") {
			ended = i
		}
		if deleted < 0 && e.Verb == "delete" && e.User == s.user {
			deleted = i
		}
	}
	if ended < 0 || deleted < ended {
		s.t.Errorf("the backup ended at %d, the first deletion was at %d", ended, deleted)
	}
}
