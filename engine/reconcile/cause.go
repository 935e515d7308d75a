package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"operetta.dev/engine/rollout"
)

// request identifies what a person asks for: a change of the resource, of its package, or of the
// annotation that asks for a reconcile.
func (s *subject) request() string {
	_, digest := s.identify()
	return fmt.Sprint(s.cr.GetUID(), s.cr.GetGeneration(), digest, s.cr.GetAnnotations()[AnnotationReconcileAt])
}

// cause returns what a rollout results from besides the live objects: the request, the patches
// and the configuration.
func (s *state) cause(in rollout.Input) string {
	patches := map[string]int64{}
	for _, p := range s.patches {
		patches[string(p.object.GetUID())] = p.object.GetGeneration()
	}
	config, err := json.Marshal(in.Config)
	if err != nil {
		return "" // it came from YAML
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(s.request(), patches, string(config)))) // a configuration may be long, and secret
	return hex.EncodeToString(sum[:])
}
