package program

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/lru"
)

// A Memo is a Program that remembers the last rollout of each custom resource, and
// returns it again while nothing that the package can see has changed. At rest a
// reconcile then costs no evaluation.
type Memo struct {
	*Program
	last *lru.Cache
}

// remembered is the last rollout of one custom resource.
type remembered struct {
	fingerprint string
	rollout     Rollout
}

// NewMemo returns a Memo that remembers so many custom resources, the least recently
// evaluated of which it forgets first.
func NewMemo(p *Program, resources int) *Memo {
	return &Memo{Program: p, last: lru.New(resources)}
}

// Evaluate returns what Program.Evaluate returns. The rollout may be shared with
// other callers, and must not be changed.
func (m *Memo) Evaluate(s Session) (Rollout, error) {
	uid, fingerprint := m.fingerprint(s)
	if uid == "" {
		return m.Program.Evaluate(s)
	}
	if v, ok := m.last.Get(uid); ok {
		if r, _ := v.(remembered); r.fingerprint == fingerprint {
			return r.rollout, nil
		}
	}
	out, err := m.Program.Evaluate(s)
	if err == nil {
		m.last.Add(uid, remembered{fingerprint, out})
	}
	return out, err
}

// Version identifies what the package sees of a session but for the live objects.
func (p *Program) Version(s Session) string {
	s.Live = nil
	_, text := p.fingerprint(s)
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// fingerprint returns the resource's UID and a text that is equal for sessions that
// evaluate alike: the resource as the package sees it, and of each live object which
// one it is and its version. Either is "" when that cannot be told.
func (p *Program) fingerprint(s Session) (uid, fingerprint string) {
	cr := p.crValue(s.CR)
	meta, _ := cr["metadata"].(map[string]any)
	uid, _ = meta["uid"].(string)
	text, err := json.Marshal(cr)
	if err != nil {
		return "", ""
	}
	// Inputs and configuration are few and small.
	rest, err := json.Marshal([]any{p.inputValues(p.digested(s).Inputs), s.Config})
	if err != nil {
		return "", ""
	}
	var b strings.Builder
	b.Write(text)
	b.Write(rest)
	for _, component := range slices.Sorted(maps.Keys(s.Live)) {
		for _, object := range slices.Sorted(maps.Keys(s.Live[component])) {
			meta, _ := s.Live[component][object]["metadata"].(map[string]any)
			if meta["uid"] == nil || meta["resourceVersion"] == nil {
				// It has no version, as it is gone or never was on a cluster.
				whole, err := json.Marshal(s.Live[component][object])
				if err != nil {
					return "", ""
				}
				fmt.Fprintf(&b, "\n%s/%s %s", component, object, whole)
				continue
			}
			fmt.Fprintf(&b, "\n%s/%s %v %v", component, object, meta["uid"], meta["resourceVersion"])
		}
	}
	return uid, b.String()
}
