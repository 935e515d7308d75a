package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// A Package is the version of a package that serves a kind.
type Package interface {
	// Session returns the session of a custom resource as a request would like to have it. It errors with
	// Faults if the resource says something that cannot be read.
	Session(ctx context.Context, resource *unstructured.Unstructured) (program.Session, error)
	// Version identifies what the package sees of a session, but for live objects.
	Version(s program.Session) string
	// Review returns what Program.Review returns.
	Review(ctx context.Context, s program.Session) (program.Review, error)
	// Converts are the served versions besides the storage version, which resources of a request have.
	Converts() []string
	// ConvertContext returns what Conversions.ConvertResource returns.
	ConvertContext(ctx context.Context, c program.Conversion) (map[string]any, error)
	// Plan says in a line each what a reconcile of a resource would do to objects. It writes nothing. before is
	// the resource as it is, or nil if it does not exist yet; it errors if that is not so, because a request
	// that no API server has sent says what it likes.
	Plan(ctx context.Context, before, after *unstructured.Unstructured) ([]string, error)
}

// Resources reviews requests that create or change the custom resources of packages. It is safe for
// concurrent use.
type Resources struct {
	packages func(schema.GroupKind) Package
	shares   *shares
	// plans has a place for each plan that is being made.
	plans chan struct{}
}

// maxPlans is how many plans are made at once. A plan sends dry runs, which may be reviewed themselves: no plan
// waits for another one.
const maxPlans = 2

// NewResources returns a reviewer of custom resources, which reviews at most concurrency requests at a time. packages
// returns the package of a kind, or nil.
func NewResources(packages func(schema.GroupKind) Package, concurrency int) *Resources {
	return &Resources{packages, newShares(concurrency), make(chan struct{}, maxPlans)}
}

// A change is a request that creates or changes a custom resource.
type change struct {
	Package

	kind schema.GroupKind
	// before is nil if the resource does not exist yet.
	before, after *unstructured.Unstructured
	session       program.Session
	// unreadable are the faults of a resource that has no session.
	unreadable fault.Faults
}

// Validate reviews whether a custom resource is what the schema of its package and its components allow. It errors if
// the package could not be evaluated. A change that the package does not see is always allowed, and so are those of a
// resource that is being deleted: finalizers have to be removed from a resource that became invalid.
func (r *Resources) Validate(ctx context.Context, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	c, end, err := r.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	defer end()
	if c == nil {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	if len(c.unreadable) > 0 {
		return c.ratchet(c.unreadable, c.unreadableBefore(ctx)), nil
	}
	review, faults, err := c.validate(ctx, c.after, c.session)
	if err != nil {
		return nil, err
	}
	if len(faults) == 0 && req.DryRun != nil && *req.DryRun {
		end() // the dry runs of the plan may need a turn
		return c.answer(nil, append(review.Warnings, r.plan(ctx, c)...)), nil
	}
	if len(faults) == 0 || c.before == nil {
		return c.answer(faults, review.Warnings), nil
	}
	was, err := c.Session(ctx, c.before)
	if err != nil {
		return c.answer(faults, nil), nil
	}
	_, known, err := c.validate(ctx, c.before, was)
	if err != nil {
		return nil, err
	}
	return c.ratchet(faults, known), nil
}

// validate returns what a package says about a resource, and why it rejects the resource: the resource cannot be
// rendered, or cannot be read in another version. It errors if the package could not be evaluated.
func (c *change) validate(ctx context.Context, u *unstructured.Unstructured, s program.Session) (program.Review, fault.Faults, error) {
	review, faults, err := c.review(ctx, s)
	if err == nil && len(faults) == 0 {
		faults, err = c.unconvertible(ctx, u)
	}
	return review, faults, err
}

// unreadableBefore returns the faults that the resource had before, if it had no session.
func (c *change) unreadableBefore(ctx context.Context) fault.Faults {
	if c.before == nil {
		return nil
	}
	_, err := c.Session(ctx, c.before)
	faults, _ := err.(fault.Faults) //nolint:errorlint // a wrapped one is about something else
	return faults
}

// plan returns what a reconcile of a changed resource would do, as warnings. A plan that is not made refuses
// nothing.
func (r *Resources) plan(ctx context.Context, c *change) []string {
	select {
	case r.plans <- struct{}{}:
		defer func() { <-r.plans }()
	default:
		return []string{"what it would do is not known: other plans are being made"}
	}
	resource := c.after.DeepCopy()
	if resource.GetUID() == "" {
		resource.SetUID(uuid.NewUUID()) // as the API server will
	}
	out, err := c.Plan(ctx, c.before, resource)
	if err != nil {
		return append(out, "what else it would do is not known: "+shortened(err.Error()))
	}
	return out
}

// maxWarning is how much of a warning the API server shows, at least.
const maxWarning = 200

// shortened returns the beginning of a text.
func shortened(text string) string {
	if len(text) > maxWarning {
		return strings.ToValidUTF8(text[:maxWarning], "") + "..."
	}
	return text
}

// ratchet answers a change of a resource by its faults, and those that it had before. What was wrong before
// is not refused: a package that became stricter must not keep users from changing something else.
func (c *change) ratchet(faults, known fault.Faults) *admissionv1.AdmissionResponse {
	var fresh fault.Faults
	var warnings []string
	for _, f := range faults {
		if slices.ContainsFunc(known, func(o fault.Fault) bool { return o.Path == f.Path && o.Message == f.Message }) {
			warnings = append(warnings, "it was invalid before, and still is: "+f.Text())
			continue
		}
		fresh = append(fresh, f)
	}
	return c.answer(fresh, warnings)
}

// begin returns the change that a request asks for, and what ends its turn. The change is nil if there is
// nothing to review.
func (r *Resources) begin(ctx context.Context, req *admissionv1.AdmissionRequest) (c *change, end func(), err error) {
	nothing := func() {}
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update || req.SubResource != "" {
		return nil, nothing, nil
	}
	c = &change{kind: schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}}
	if c.Package = r.packages(c.kind); c.Package == nil {
		return nil, nothing, fmt.Errorf("no package serves %s here", c.kind)
	}
	if beingDeleted(req.Object.Raw) {
		return nil, nothing, nil
	}
	leave, err := r.shares.take(ctx, tenantOf(req), int64(len(req.Object.Raw)+len(req.OldObject.Raw)))
	if err != nil {
		return nil, nothing, err
	}
	end = sync.OnceFunc(leave)
	// An object takes many times the memory of its text, so nothing is decoded before the turn has come.
	if err := c.decode(req); err != nil {
		end()
		return nil, nothing, err
	}
	c.session, err = c.Session(ctx, c.after)
	switch faults, unreadable := err.(fault.Faults); { //nolint:errorlint // a wrapped one is about something else
	case unreadable:
		c.unreadable = faults
	case err != nil:
		end()
		return nil, nothing, err
	case c.unseen(ctx):
		end()
		return nil, nothing, nil
	}
	return c, end, nil
}

// beingDeleted reports whether an object is being deleted, without decoding the rest of it.
func beingDeleted(raw []byte) bool {
	var head struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	return json.Unmarshal(raw, &head) == nil && head.Metadata.DeletionTimestamp != nil
}

// decode reads the resource that a request has, and the one before.
func (c *change) decode(req *admissionv1.AdmissionRequest) (err error) {
	if c.after, err = resourceOf(req, req.Object.Raw); err != nil {
		return err
	}
	if req.Operation == admissionv1.Update {
		c.before, err = resourceOf(req, req.OldObject.Raw)
	}
	return err
}

// unseen reports whether the package sees nothing of a change.
func (c *change) unseen(ctx context.Context) bool {
	if c.before == nil {
		return false
	}
	before := c.before.DeepCopy()
	before.SetGeneration(c.after.GetGeneration()) // which the API server increments with the spec
	was, err := c.Session(ctx, before)
	return err == nil && c.Version(was) == c.Version(c.session)
}

// tenantOf returns who takes turns with others: a namespace, or a user if the resource is in none.
func tenantOf(req *admissionv1.AdmissionRequest) string {
	if req.Namespace != "" {
		return req.Namespace
	}
	return "/" + req.UserInfo.Username
}

// resourceOf returns a custom resource of a request, with what the API server adds after the review.
func resourceOf(req *admissionv1.AdmissionRequest, raw []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("reading the custom resource: %w", err)
	}
	if got := u.GroupVersionKind(); got.Group != req.Kind.Group || got.Kind != req.Kind.Kind || got.Version != req.Kind.Version {
		return nil, fmt.Errorf("the request is about a %s, and has a %s", req.Kind.Kind, got.Kind)
	}
	if _, isMap := u.Object["metadata"].(map[string]any); !isMap {
		u.Object["metadata"] = map[string]any{}
	}
	if req.Namespace != "" {
		u.SetNamespace(req.Namespace)
	}
	switch {
	case u.GetName() != "":
	case req.Name != "":
		u.SetName(req.Name)
	default: // what a generated name looks like
		u.SetName(u.GetGenerateName() + "xxxxx")
	}
	return u, nil
}

// review returns what a package says of a session, and what makes it refuse it. It errors if it says
// nothing.
func (c *change) review(ctx context.Context, s program.Session) (program.Review, fault.Faults, error) {
	out, err := c.Review(ctx, s)
	if limit, over := errors.AsType[*program.LimitError](err); over {
		return out, fault.Faults{{Path: "spec", Message: limit.Text}}, nil
	}
	if undecided, may := errors.AsType[*program.UndecidedError](err); may && undecided != nil {
		return out, nil, nil //nolint:nilerr // which components there are may rest on live objects
	}
	if err != nil {
		return out, nil, err
	}
	if faults := out.Rollout.Misconfigured; len(faults) > 0 {
		if slices.ContainsFunc(s.Config, func(l program.Layer) bool { return l.Tenant }) {
			return out, faults, nil
		}
		return out, nil, fmt.Errorf("the configuration of the operator is invalid: %w", faults)
	}
	faults := out.Rollout.Invalid
	for _, component := range out.Rollout.Components {
		faults = append(faults, invalidObjects(component)...)
	}
	for _, hook := range out.Rollout.Hooks {
		faults = append(faults, invalidObjects(hook.Component)...)
	}
	return out, faults, nil
}

// invalidObjects returns the faults of the objects of a component that can never be rendered.
func invalidObjects(c program.Component) fault.Faults {
	if c.Rendering != program.RenderedInvalid {
		return nil
	}
	var out fault.Faults
	for _, f := range c.Faults {
		f.Message += f.Position.InBrackets()
		if f.Path == "" {
			f.Path = "components." + c.Name
		}
		out = append(out, f)
	}
	return out
}

// answer returns the answer to a change.
func (c *change) answer(faults fault.Faults, warnings []string) *admissionv1.AdmissionResponse {
	if len(faults) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}
	}
	var list field.ErrorList
	for _, f := range faults {
		list = append(list, fieldError(f))
	}
	status := apierrors.NewInvalid(c.kind, c.after.GetName(), list).Status()
	return &admissionv1.AdmissionResponse{Result: &status, Warnings: warnings}
}

// fieldError returns a fault in the words of Kubernetes. It does not have the value, which may be a secret.
func fieldError(f fault.Fault) *field.Error {
	out := &field.Error{Type: field.ErrorTypeInvalid, Field: f.Path, BadValue: field.OmitValueType{}, Detail: f.Message}
	if f.Code == fault.Unset {
		out.Type = field.ErrorTypeRequired
	}
	// CUE begins some messages with the path.
	out.Detail = strings.TrimPrefix(out.Detail, f.Path+": ")
	if f.Hint != "" {
		out.Detail += " (" + f.Hint + ")"
	}
	return out
}
