package evaluate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A memo has what CUE said last of each custom resource. The answers of templates are not among it:
// they cost less than the memory that they would take.
type memo struct{ last *lru.Cache }

// remembered is the last rollout of one custom resource, and the view that it was evaluated from.
type remembered struct {
	view    template.Key
	rollout program.Rollout
}

// get returns the rollout of a resource, if the package saw the same when it was evaluated.
func (m memo) get(s program.Session, view program.View) (program.Rollout, bool) {
	v, known := m.last.Get(uidOf(s))
	if !known {
		return program.Rollout{}, false
	}
	r, _ := v.(remembered)
	return r.rollout, r.view == view.Whole()
}

func (m memo) add(s program.Session, view program.View, r program.Rollout) {
	if uid := uidOf(s); uid != "" {
		m.last.Add(uid, remembered{view.Whole(), r})
	}
}

// forget forgets the rollout of a resource: it has another one now, from a template.
func (m memo) forget(s program.Session) { m.last.Remove(uidOf(s)) }

func uidOf(s program.Session) string {
	uid, _, _ := unstructured.NestedString(s.CR, "metadata", "uid")
	return uid
}
