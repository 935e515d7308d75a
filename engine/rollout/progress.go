package rollout

import (
	"slices"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// progress is how far the components of a rollout are.
type progress struct {
	*evaluated
	// desired are the objects of the components that may be applied.
	desired map[string][]ownership.Desired
	// stamped are the objects that were stamped, by component and object.
	stamped map[[2]string]stamped
	// awaited are the components that define kinds of their own which are not served yet,
	// with what they wait for.
	awaited  map[string]string
	outcomes map[string]status.Component
	// judged are the components whose outcome is about what was applied.
	judged map[string]bool
	// rejected is what the API server said of objects that it refused, by address.
	rejected map[string]string
	// failures are errors of the cluster, to be retried with backoff.
	failures []error
}

// components returns the outcomes in the author's order, the hooks last.
func (pr *progress) components() []status.Component {
	var out []status.Component
	for _, c := range pr.everything() {
		if o, ok := pr.outcomes[c.Name]; ok {
			o.Timeout, o.WaitsFor, o.DependsOn = c.Timeout, pr.waitsFor(c, o), pr.dependsOn(c)
			out = append(out, o)
		}
	}
	return out
}

// dependsOn returns the dependencies of a component that are not excluded, if it or one of them has no objects. The inventory has
// components with objects only.
func (pr *progress) dependsOn(c program.Component) []string {
	if _, excluded := pr.excluded[c.Name]; excluded {
		return nil
	}
	var out []string
	tell := len(c.Objects) == 0
	for _, e := range c.Edges {
		to, exists := pr.component(e.To)
		if _, excluded := pr.excluded[e.To]; excluded || !exists || slices.Contains(out, e.To) {
			continue
		}
		out = append(out, e.To)
		tell = tell || len(to.Objects) == 0
	}
	if !tell {
		return nil
	}
	return out
}

// anyFailed reports whether a component has failed for which the function which returns true.
func (pr *progress) anyFailed(which func(component string) bool) bool {
	for name, o := range pr.outcomes {
		if o.State == status.Failed && pr.graph.Has(name) && which(name) {
			return true
		}
	}
	return false
}

// anyIn reports whether an outcome has one of some states.
func (pr *progress) anyIn(states ...status.State) bool {
	for _, o := range pr.outcomes {
		if slices.Contains(states, o.State) {
			return true
		}
	}
	return false
}

// inSync reports whether there is nothing to write for a component.
func (pr *progress) inSync(component string) bool {
	return !slices.ContainsFunc(pr.desired[component], func(d ownership.Desired) bool {
		return !pr.finished(d) && ownership.Decide(d, pr.live[component][d.Object], pr.in.Owner).Decision != ownership.Keep
	})
}

func failed(name string, reason status.Reason, message string) status.Component {
	return status.Component{Name: name, State: status.Failed, Reason: reason, Message: message}
}

func waiting(name string, reason status.Reason, message string) status.Component {
	return status.Component{Name: name, State: status.Waiting, Reason: reason, Message: message}
}

// retrying is the outcome of a component that the cluster refused for now, or of a
// rollout that it did not answer.
func retrying(name, message string) status.Component {
	return status.Component{Name: name, State: status.Retrying, Reason: status.ReasonApplyFailed, Message: message}
}
