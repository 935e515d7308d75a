package history

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Report is what an operator knows of the last reconciles of one resource. Its form as JSON is documented for
// scripts, in docs/explain.md.
type Report struct {
	// Since is since when the operator knows: it forgets with its process.
	Since time.Time `json:"since"`
	// Total counts the reconciles since then, and Reconciles are the last of them, the newest first.
	Total      int64       `json:"total"`
	Reconciles []Reconcile `json:"reconciles,omitempty"`
	// Waiting is what has come since the last reconcile began and waits for the next one.
	Waiting []Trigger `json:"waiting,omitempty"`
	// Next is the timer or retry that reconciles the resource if nothing else does.
	Next *Timer `json:"next,omitempty"`
	// Watches are what has the resource reconciled.
	Watches []Watch `json:"watches,omitempty"`
	// MoreWatches is how many watches are left out.
	MoreWatches int `json:"moreWatches,omitempty"`
}

// A Reconcile is a reconcile that has ended or is running. Consecutive reconciles without a trigger, with the same
// result and cost, are one entry: otherwise, a timer every few seconds would hide everything else.
type Reconcile struct {
	// Began is when the last of them began, and Times how many they are.
	Began time.Time `json:"began"`
	Times int       `json:"times"`
	// Took is missing while it runs.
	Took *metav1.Duration `json:"took,omitempty"`
	// Result is how it has ended, or Running.
	Result Result `json:"result"`
	// Triggers are why it began, in the order in which they came.
	Triggers []Trigger `json:"triggers"`
	// MoreTriggers is how many triggers are left out.
	MoreTriggers int `json:"moreTriggers,omitempty"`
	// Requests are what it asked of the API server, by verb and resource. What caches list and watch serves all
	// resources, and Events are sent in the background: neither is counted.
	Requests []Requests `json:"requests,omitempty"`
}

// Result is how a reconcile has ended.
type Result string

// The results of a reconcile.
const (
	Running Result = "Running"
	// Success: there is nothing to do until the next event.
	Success Result = "Success"
	// RequeueAfter: it is reconciled again after a time, too.
	RequeueAfter Result = "RequeueAfter"
	// Error: it is tried again with backoff.
	Error Result = "Error"
)

// A Cause is what kind of thing triggers a reconcile.
type Cause string

// The causes of reconciles.
const (
	// Start: the operator has listed the resource or object for the first time.
	Start Cause = "Start"
	// Resource: the resource itself was created, changed or deleted.
	Resource Cause = "Resource"
	// Object: an object of the resource was created, changed or deleted.
	Object Cause = "Object"
	// Input: an object was created, changed or deleted that the package reads.
	Input Cause = "Input"
	// Patch: a Patch that may be about the resource was created, changed or deleted.
	Patch Cause = "Patch"
	// TimerDue: the reconcile before asked for another one after a time.
	TimerDue Cause = "Timer"
	// Retry: the reconcile before ended with an error.
	Retry Cause = "Retry"
	// Package: the package has another version, or another state.
	Package Cause = "Package"
	// Readable: a kind can be read now that could not be read before.
	Readable Cause = "Readable"
	// Permitted: the operator has a permission now that it lacked before.
	Permitted Cause = "Permitted"
	// Resync: the operator looks at all resources again from time to time.
	Resync Cause = "Resync"
	// Again: something came at the moment at which the reconcile before began.
	Again Cause = "Again"
)

// An Action is what happened to an object.
type Action string

// What may happen to an object.
const (
	Created Action = "Created"
	Changed Action = "Changed"
	Deleted Action = "Deleted"
)

// A Trigger is why a reconcile began.
type Trigger struct {
	Cause Cause `json:"cause"`
	// Time is when it came last, and Count how often it came.
	Time  time.Time `json:"time"`
	Count int       `json:"count"`
	// Action, APIVersion, Kind, Namespace and Name are what happened to which object.
	Action     Action `json:"action,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Changes are which fields somebody has changed.
	Changes []Change `json:"changes,omitempty"`
	// After is how long a timer or retry has waited.
	After *metav1.Duration `json:"after,omitempty"`
	// Digest is the version of the package from now on.
	Digest string `json:"digest,omitempty"`
}

// A Change is what one field manager has changed of an object.
type Change struct {
	// Manager and Operation are as in managedFields. They are "" if nobody is known to have made the change.
	Manager   string `json:"manager,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Fields are the paths of fields, and More is how many are left out.
	Fields []string `json:"fields,omitempty"`
	More   int      `json:"more,omitempty"`
}

// Requests are how often something was asked of the API server.
type Requests struct {
	// Verb is as in a Role, and apply for a server-side apply.
	Verb string `json:"verb"`
	// Resource is as in a Role, with its group and subresource.
	Resource string `json:"resource"`
	Count    int    `json:"count"`
}

// A Timer is when a resource is reconciled without an event.
type Timer struct {
	// Cause is Timer or Retry.
	Cause Cause           `json:"cause"`
	After metav1.Duration `json:"after"`
	Due   time.Time       `json:"due"`
}

// A Watch has a resource reconciled when what it watches changes.
type Watch struct {
	// Of is Resource, Object, Input or Patch: what is watched for the resource.
	Of         Cause  `json:"of"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is where, and "" is everywhere.
	Namespace string `json:"namespace,omitempty"`
	// Name and Selector restrict an input.
	Name     string     `json:"name,omitempty"`
	Selector string     `json:"selector,omitempty"`
	State    WatchState `json:"state"`
	// Message says why it does not run.
	Message string `json:"message,omitempty"`
}

// WatchState is how far a watch is.
type WatchState string

// The states of a watch.
const (
	// Watching: what changes has the resource reconciled.
	Watching WatchState = "Watching"
	// Pending: the kind could not be listed yet. The resource is reconciled when it can.
	Pending WatchState = "Pending"
	// NotWatched: the objects are read live, in an interval.
	NotWatched WatchState = "NotWatched"
)

// Path is the path at which an operator serves reports.
const Path = "/debug/reconciles"
