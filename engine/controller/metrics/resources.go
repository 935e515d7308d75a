package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/status"
)

// The limits of a scrape, whatever users create.
const (
	// maxWaiting is how many components of one controller are named because they wait: those that have waited longest.
	maxWaiting = 50
	// maxComponents is how many names of components one controller has; a package may render names from what users write.
	maxComponents = 100
	// maxDigests is how many versions of a package one controller has.
	maxDigests = 10
	// maxLabel is how many bytes a label has that a status says. A status may have been written by somebody else.
	maxLabel = 253
)

// other stands for what is beyond a limit. No component has this name, as CUE hides fields that begin so.
const other = "_other"

var (
	descResources = desc("operetta_resources", "Custom resources, by phase; it is empty for one that has none.", "phase")
	descPaused    = desc("operetta_resources_paused", "Custom resources that a person has paused.")
	descDigests   = desc("operetta_resources_by_package_digest", "Custom resources, by the version of the package that they were last reconciled with.", "digest")
	descStates    = desc("operetta_components", "Components of all custom resources of a kind, by name and state.", "component", "state")
	descParked    = desc("operetta_workqueue_parked", "Requests that wait beside the queue until slow or suspect resources may have a worker; workqueue_depth does not count them.")
	descRefused   = desc("operetta_namespaces_refused",
		"1 for each namespace in which the operator may not list or watch the custom resources, so that it serves none of them; the namespace is empty for all.", "namespace")
	descWaiting = desc("operetta_component_waiting_since_timestamp_seconds",
		"When a component that is not done came into its state, in seconds since 1970, for those of a controller that have waited longest.",
		"namespace", "name", "component", "state", "reason")
)

// desc returns the description of a metric of a controller.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{labelController}, labels...), nil)
}

// resources has how far the resources of each controller are. It counts at each scrape, so that nothing can
// count twice or be forgotten.
type resources struct {
	mu sync.Mutex
	of map[string]*controllerResources
}

// controllerResources has the resources of one controller.
type controllerResources struct {
	found map[types.NamespacedName]status.Summary
	// components are the names that have series of their own, those that came first.
	components map[string]bool
	// parked returns how many requests wait beside the queue; it may be nil.
	parked func() int
	// refused returns the namespaces whose resources may not be read; it may be nil.
	refused func() []string
}

// resources returns the resources of a controller. The caller holds the lock.
func (c *Controller) resources() *controllerResources {
	r := &c.metrics.resources
	if r.of[c.name] == nil {
		r.of[c.name] = &controllerResources{found: map[types.NamespacedName]status.Summary{}, components: map[string]bool{}}
	}
	return r.of[c.name]
}

// Parked makes each scrape ask how many requests wait beside the queue of the controller.
func (c *Controller) Parked(count func() int) {
	c.metrics.resources.mu.Lock()
	defer c.metrics.resources.mu.Unlock()
	c.resources().parked = count
}

// Refused makes each scrape ask in which namespaces the resources of the controller may not be read.
func (c *Controller) Refused(namespaces func() []string) {
	c.metrics.resources.mu.Lock()
	defer c.metrics.resources.mu.Unlock()
	c.resources().refused = namespaces
}

// Observe implements reconcile.Observer.
func (c *Controller) Observe(key types.NamespacedName, found status.Summary) {
	c.metrics.resources.mu.Lock()
	defer c.metrics.resources.mu.Unlock()
	found.Digest = bounded(found.Digest)
	for i := range found.Components {
		comp := &found.Components[i]
		comp.Name, comp.Reason = bounded(comp.Name), bounded(comp.Reason)
	}
	c.resources().found[key] = found
}

// bounded returns a text if it fits a label.
func bounded[T ~string](text T) T {
	if len(text) > maxLabel {
		return other
	}
	return text
}

// Gone implements reconcile.Observer.
func (c *Controller) Gone(key types.NamespacedName) {
	r := &c.metrics.resources
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[c.name]; of != nil {
		delete(of.found, key)
	}
}

// remove forgets the resources of a controller.
func (r *resources) remove(controller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, controller)
}

// Describe implements prometheus.Collector.
func (r *resources) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descResources, descPaused, descDigests, descStates, descParked, descRefused, descWaiting} {
		out <- d
	}
}

// Collect implements prometheus.Collector. No reconcile waits while a scrape takes what was counted.
func (r *resources) Collect(out chan<- prometheus.Metric) {
	var all []prometheus.Metric
	r.mu.Lock()
	for name, of := range r.of {
		all = append(all, of.count().metrics(name)...)
	}
	r.mu.Unlock()
	for _, m := range all {
		out <- m
	}
}

// counted is what a scrape shows of a controller.
type counted struct {
	phases  map[status.Phase]int
	paused  int
	digests map[string]int
	states  map[componentState]int
	waiting []waiting
	parked  int
	refused []string
}

// A componentState is the name and the state of a component.
type componentState struct {
	name  string
	state status.State
}

// waiting is a component of a resource that is not done.
type waiting struct {
	key types.NamespacedName
	status.ComponentSummary
}

// count counts the resources of a controller.
func (r *controllerResources) count() counted {
	out := counted{phases: map[status.Phase]int{}, digests: map[string]int{}, states: map[componentState]int{}}
	for _, p := range status.Phases {
		out.phases[p] = 0 // a series that is not there is not 0
	}
	r.renewComponents()
	for key, found := range r.found {
		out.phases[found.Phase]++
		out.digests[found.Digest]++
		if found.Paused {
			out.paused++
		}
		for _, c := range found.Components {
			out.states[componentState{r.shown(c.Name), c.State}]++
			if !c.Since.IsZero() {
				out.waiting = append(out.waiting, waiting{key, c})
			}
		}
	}
	if r.parked != nil {
		out.parked = r.parked()
	}
	if r.refused != nil {
		out.refused = r.refused()
	}
	out.limit()
	return out
}

// shown returns the name of a component in the metrics.
func (r *controllerResources) shown(component string) string {
	if r.components[component] {
		return component
	}
	return other
}

// renewComponents forgets the names of components that no resource has any more, and gives their places to others.
func (r *controllerResources) renewComponents() {
	present := map[string]bool{}
	for _, found := range r.found {
		for _, c := range found.Components {
			present[c.Name] = true
		}
	}
	maps.DeleteFunc(r.components, func(name string, _ bool) bool { return !present[name] })
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if len(r.components) == maxComponents {
			return
		}
		r.components[name] = true
	}
}

// limit leaves out what is beyond the limits of a scrape.
func (c *counted) limit() {
	slices.SortFunc(c.waiting, func(a, b waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.key.String(), b.key.String()), strings.Compare(a.Name, b.Name))
	})
	c.waiting = c.waiting[:min(len(c.waiting), maxWaiting)]
	digests := slices.SortedFunc(maps.Keys(c.digests), func(a, b string) int {
		return cmp.Or(c.digests[b]-c.digests[a], strings.Compare(a, b))
	})
	for _, d := range digests[min(len(digests), maxDigests):] {
		c.digests[other] += c.digests[d]
		delete(c.digests, d)
	}
}

// metrics returns the series of a controller.
func (c counted) metrics(controller string) []prometheus.Metric {
	var out []prometheus.Metric
	seen := map[string]bool{}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		for i, l := range labels {
			labels[i] = strings.ToValidUTF8(l, "_") // the library panics otherwise
		}
		// A status may have two components whose names do not fit a label, and a series twice ends the scrape.
		series := d.String() + strings.Join(labels, "\xff")
		if seen[series] {
			return
		}
		seen[series] = true
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{controller}, labels...)...))
	}
	for phase, n := range c.phases {
		gauge(descResources, float64(n), string(phase))
	}
	gauge(descPaused, float64(c.paused))
	gauge(descParked, float64(c.parked))
	for _, namespace := range c.refused {
		gauge(descRefused, 1, namespace)
	}
	for digest, n := range c.digests {
		gauge(descDigests, float64(n), digest)
	}
	for of, n := range c.states {
		gauge(descStates, float64(n), of.name, string(of.state))
	}
	for _, w := range c.waiting {
		gauge(descWaiting, float64(w.Since.Unix()), w.key.Namespace, w.key.Name, w.Name, string(w.State), string(w.Reason))
	}
	return out
}
