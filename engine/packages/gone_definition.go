package packages

import "k8s.io/apimachinery/pkg/runtime/schema"

// Definitions says whether kinds that are served are still defined. It costs no request: the watches of their resources are told.
type Definitions interface {
	// Gone reports whether the API server has said of a kind that is served that there is none, and has not served it since.
	Gone(kind schema.GroupVersionKind) bool
}

// lookForDefinition has the definition of what is served written again if it is gone. That of a deleted Package may go with it.
func (s *state) lookForDefinition(p Package, in Definitions) {
	if s.served == nil || in == nil {
		return
	}
	if !in.Gone(s.served.GroupVersionKind()) {
		s.gone = s.gone && s.defined == "" // what could not be written is tried again, and that says what the cluster has
		return
	}
	s.gone = true
	if !p.deleted() {
		s.defined = ""
	}
}
