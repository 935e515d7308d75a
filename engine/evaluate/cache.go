package evaluate

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/template"
)

// A fallback is the reason why CUE is asked.
type fallback string

// The reasons. They are labels of a metric.
const (
	off          fallback = "off"          // there are no templates
	unseen       fallback = "unseen"       // the session is to be compiled
	seenOnce     fallback = "seen-once"    // the shape may not come again
	compiling    fallback = "compiling"    // another session of the package is compiled just now
	throttled    fallback = "throttled"    // the namespace has made many shapes
	untranslated fallback = "untranslated" // the package says something that does not translate
	guarded      fallback = "guarded"      // the template has no answer for these values
	beyondLimit  fallback = "limit"        // something is beyond a limit
	differed     fallback = "differed"     // a template gave another result than CUE
	unchecked    fallback = "unchecked"    // CUE has not evaluated the specification yet
)

const (
	// entryBytes is what an entry takes besides its template.
	entryBytes = 512
	// maxNamespaces is how many namespaces have buckets of their own.
	maxNamespaces = 1000
	// compileBurst is how many templates a namespace makes at once, and compilesPerSecond how many
	// after that. One costs 20 ms or more, and most packages need fewer than ten. What does not
	// translate costs as many as failureTokens, because much is tried.
	compileBurst      = 40
	compilesPerSecond = 0.2
	failureTokens     = 8
	// tokensForUnseen is how many tokens a namespace must have left for its shapes to be compiled when they
	// are seen first. With fewer, they have to come a second time.
	tokensForUnseen = compileBurst / 2
	// maxFailures is how many values of the pins of a shape may fail to translate before the
	// shape is given up.
	maxFailures = 4
)

// A shaped has a shape. A program.View does.
type shaped interface {
	Shape(pins template.Pins) template.Key
}

// A cache has the templates of a package. What each namespace has made is counted for itself: when
// room is needed, the namespace that takes most of it loses what it has not used for longest.
//
// A template holds for all sessions that have its key, whoever made it. What a namespace found out on the way is
// its own: which values it had to pin, what does not translate, and what it has seen. Otherwise one odd value there
// would cost all the others.
type cache struct {
	// pins are those that every session of the package has.
	pins    template.Pins
	limit   int
	metrics packageMetrics

	mu sync.Mutex
	// used are the bytes of all entries, and templates is how many of them have one.
	used, templates int
	// compiling is true while a session is compiled: one at a time, and nobody waits for it.
	compiling bool
	entries   map[entryID]*list.Element
	owners    map[string]*owner
	buckets   *lru.Cache
	// removed is called with each template that is no longer there.
	removed func(*compile.Template)
	// refined are the pins of templates that needed more than those of the package, by shape.
	refined map[template.Key][]*refinement
}

// An entryID is the key of a template, or of what a namespace knows of sessions with that key.
type entryID struct {
	key       template.Key
	namespace string // "" for the template
}

// A refinement is a choice of pins for a shape that a namespace has found, and others may try.
type refinement struct {
	pins template.Pins
	by   string
	// templates is how many templates there are with these pins.
	templates int
}

// maxRefinements is how many choices of pins for a shape are tried in search of a template. Each
// costs a key, which is 10 us.
const maxRefinements = 4

// An owner is a namespace whose sessions have made entries.
type owner struct {
	name  string
	bytes int
	order *list.List // most recently used first
}

// An entry is a template, or what a namespace knows of a key.
type entry struct {
	id    entryID
	owner *owner
	bytes int
	// template is nil if there is none, for a reason.
	template *compile.Template
	reason   fallback
	// shape and refinement say which pins a template has, if they are not those of the package.
	shape      template.Key
	refinement *refinement
	// pins are those that the namespace needs for the shape, if they are more than the package's.
	pins *template.Pins
	// failures is how many values of the pins did not translate.
	failures int
}

// A place is where in a cache the template of a session is.
type place struct {
	namespace string
	now       time.Time
	// shape is the key by the pins of the package, and key the one by pins.
	shape, key template.Key
	pins       template.Pins
	// assembled is true if the template has just been made of parts of others.
	assembled bool
}

func newCache(pins template.Pins, limit int, m packageMetrics) *cache {
	return &cache{
		pins: pins, limit: limit, metrics: m,
		entries: map[entryID]*list.Element{}, owners: map[string]*owner{}, buckets: lru.New(maxNamespaces),
		refined: map[template.Key][]*refinement{}, removed: func(*compile.Template) {},
	}
}

// clear forgets all templates.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used, c.templates = 0, 0
	clear(c.entries)
	clear(c.owners)
	clear(c.refined)
	c.metrics.holds(0, 0)
}

// drop forgets the template at a place, which has gave another result than CUE. There is no other one for
// the sessions that it was for.
func (c *cache) drop(at place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(entryID{key: at.key}, at.namespace)
	if e.template != nil {
		c.templates--
		c.removed(e.template)
		c.release(e)
		c.grow(e, entryBytes-e.bytes)
	}
	e.template, e.reason = nil, differed
	c.metrics.holds(c.templates, c.used)
}

// placeOf returns where the template for a view is: by the pins that its namespace needs, by those of the package, or
// by those that others have needed, if there is a template. Without one, it is where the namespace would have it.
func (c *cache) placeOf(view shaped, namespace string, now time.Time) place {
	shape := view.Shape(c.pins)
	base := place{namespace: namespace, now: now, shape: shape, key: shape, pins: c.pins}
	own, others, found := c.candidates(base)
	if found {
		return base
	}
	if own != nil {
		base.pins, base.key = *own, view.Shape(*own)
		if c.known(base.key) {
			return base
		}
	}
	for _, pins := range others {
		at := base
		at.pins, at.key = pins, view.Shape(pins)
		if c.known(at.key) {
			return at
		}
	}
	return base
}

// candidates returns the pins that a namespace needs for a shape, or nil, and those of templates that others have. found is true if
// the namespace needs none, and there is a template for the shape.
func (c *cache) candidates(at place) (own *template.Pins, others []template.Pins, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.use(entryID{at.shape, at.namespace}); e != nil {
		own = e.pins
	}
	if own == nil && c.use(entryID{key: at.shape}) != nil {
		return nil, nil, true
	}
	for _, r := range c.refined[at.shape] {
		others = append(others, r.pins)
	}
	return own, others, false
}

// known reports whether there is a template for a key, or the reason why there will be none.
func (c *cache) known(key template.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.use(entryID{key: key}) != nil
}

// held returns the template at a place, or nil if there is none, and lets nobody compile one.
func (c *cache) held(at place) *compile.Template {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.use(entryID{key: at.key}); e != nil {
		return e.template
	}
	return nil
}

// has reports whether a template is there.
func (c *cache) has(t *compile.Template) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.entries {
		if e, _ := at.Value.(*entry); e.template == t {
			return true
		}
	}
	return false
}

// template returns the template at a place, or the reason why there is none. For unseen, the
// caller compiles the session, and says so with compiled; no other one is compiled meanwhile.
func (c *cache) template(at place) (*compile.Template, fallback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.use(entryID{key: at.key}); e != nil {
		return e.template, e.reason
	}
	if e := c.use(entryID{at.shape, at.namespace}); e != nil && e.failures >= maxFailures {
		return nil, untranslated
	}
	e := c.entry(entryID{at.key, at.namespace}, at.namespace)
	first := e.reason == ""
	switch {
	case first:
		e.reason = seenOnce
		c.evict()
	case e.reason != seenOnce:
		return nil, e.reason
	}
	switch {
	case c.compiling:
		return nil, compiling
	case first && !c.take(at.namespace, at.now, tokensForUnseen):
		return nil, seenOnce
	case !first && !c.take(at.namespace, at.now, 0):
		return nil, throttled
	}
	c.compiling = true
	return nil, unseen
}

// compiled notes what came of the compilation of a session. A session that is at fault itself tells
// nothing of its shape.
func (c *cache) compiled(at place, view shaped, r compile.Result) {
	known := r.Template != nil || len(r.Untranslated) > 0 && !r.Inconclusive
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compiling = false
	shape := c.entry(entryID{at.shape, at.namespace}, at.namespace)
	pins, key := at.pins, at.key
	if all, more := union(at.pins, shape.pins, r.Pins); known && more {
		pins, key = all, view.Shape(all)
		shape.pins = &all
	}
	switch {
	case r.Template != nil:
		c.add(at, key, pins, r.Template)
		shape.failures = 0
	case r.Inconclusive:
		c.bucket(at.namespace).ReserveN(at.now, failureTokens)
	case known:
		c.entry(entryID{key, at.namespace}, at.namespace).reason = untranslated
		c.bucket(at.namespace).ReserveN(at.now, failureTokens)
		shape.failures++
	}
	c.evict()
}

// assembled adds a template that was made of parts of others, by pins that its shape has besides those of a place, and
// returns where it is.
func (c *cache) assembled(at place, view shaped, pins template.Pins, t *compile.Template) place {
	c.mu.Lock()
	defer c.mu.Unlock()
	shape := c.entry(entryID{at.shape, at.namespace}, at.namespace)
	if all, more := union(at.pins, shape.pins, pins); more {
		at.pins, at.key = all, view.Shape(all)
		shape.pins = &all
	}
	c.add(at, at.key, at.pins, t)
	c.evict()
	at.assembled = true
	return at
}

// add adds a template, unless somebody else was faster.
func (c *cache) add(at place, key template.Key, pins template.Pins, t *compile.Template) {
	e := c.entry(entryID{key: key}, at.namespace)
	if e.template != nil || e.reason != "" {
		return
	}
	e.template, e.shape = t, at.shape
	c.templates++
	c.grow(e, t.Size())
	if key != at.shape {
		c.refine(e, pins)
	}
}

// refine notes the pins of a template, for others to try. Each namespace has one choice for a shape, so
// that it cannot take the place of all others.
func (c *cache) refine(e *entry, pins template.Pins) {
	all := c.refined[e.shape]
	same := func(r *refinement) bool { return r.pins.Equal(pins) }
	mine := func(r *refinement) bool { return r.by == e.owner.name }
	i := slices.IndexFunc(all, same)
	if i < 0 {
		all = slices.DeleteFunc(all, mine)
		if len(all) < maxRefinements {
			all = append(all, &refinement{pins: pins, by: e.owner.name})
		}
		c.refined[e.shape] = all
		if i = slices.IndexFunc(all, same); i < 0 {
			return
		}
	}
	e.refinement = all[i]
	e.refinement.templates++
}

// release forgets the pins of a template that is no longer there, if no other one has them.
func (c *cache) release(e *entry) {
	r := e.refinement
	e.refinement = nil
	if r == nil {
		return
	}
	if r.templates--; r.templates > 0 {
		return
	}
	left := slices.DeleteFunc(c.refined[e.shape], func(other *refinement) bool { return other == r })
	if c.refined[e.shape] = left; len(left) == 0 {
		delete(c.refined, e.shape)
	}
}

// union returns the pins of a session that was compiled, and of others of its shape that were compiled
// meanwhile, and whether there are more than at first.
func union(first template.Pins, others *template.Pins, grown template.Pins) (template.Pins, bool) {
	out, more := first.Union(grown)
	if others == nil {
		return out, more
	}
	out, evenMore := out.Union(*others)
	return out, more || evenMore
}

// take reports whether a namespace may compile one more session, and still has so many tokens then.
func (c *cache) take(namespace string, now time.Time, left float64) bool {
	bucket := c.bucket(namespace)
	return bucket.TokensAt(now) > left && bucket.AllowN(now, 1)
}

// bucket returns the tokens of a namespace.
func (c *cache) bucket(namespace string) *rate.Limiter {
	v, _ := c.buckets.Get(namespace)
	bucket, ok := v.(*rate.Limiter)
	if !ok {
		bucket = rate.NewLimiter(compilesPerSecond, compileBurst)
		c.buckets.Add(namespace, bucket)
	}
	return bucket
}

// use returns an entry, or nil, and notes that it was used.
func (c *cache) use(id entryID) *entry {
	at, ok := c.entries[id]
	if !ok {
		return nil
	}
	e, _ := at.Value.(*entry)
	e.owner.order.MoveToFront(at)
	return e
}

// entry returns an entry, which belongs to a namespace if it is new.
func (c *cache) entry(id entryID, namespace string) *entry {
	if e := c.use(id); e != nil {
		return e
	}
	of := c.owners[namespace]
	if of == nil {
		of = &owner{name: namespace, order: list.New()}
		c.owners[namespace] = of
	}
	e := &entry{id: id, owner: of}
	c.entries[id] = of.order.PushFront(e)
	c.grow(e, entryBytes)
	return e
}

// grow notes that an entry takes more bytes.
func (c *cache) grow(e *entry, bytes int) {
	e.bytes += bytes
	e.owner.bytes += bytes
	c.used += bytes
}

// evict removes entries until the rest fits.
func (c *cache) evict() {
	for c.used > c.limit && len(c.owners) > 0 {
		var most *owner
		for _, o := range c.owners {
			if most == nil || o.bytes > most.bytes || o.bytes == most.bytes && o.name < most.name {
				most = o
			}
		}
		at := most.order.Back()
		e, _ := most.order.Remove(at).(*entry)
		delete(c.entries, e.id)
		if e.template != nil {
			c.templates--
			c.removed(e.template)
			c.release(e)
		}
		c.grow(e, -e.bytes)
		if most.order.Len() == 0 {
			delete(c.owners, most.name)
		}
	}
	c.metrics.holds(c.templates, c.used)
}
