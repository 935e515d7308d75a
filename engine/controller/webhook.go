package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/admission"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// serveWebhooks serves the admission webhooks, unless their address is "". The person who installs the operator
// registers them with the API server. They are served by every process, whether it leads or not.
func (m *Manager) serveWebhooks() error {
	o := m.options
	if o.WebhookAddress == "" {
		return nil
	}
	host, text, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil {
		return fmt.Errorf("the address of the webhooks: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("the address of the webhooks: %s has no port", o.WebhookAddress)
	}
	options := webhook.Options{Host: host, Port: int(port), CertDir: o.WebhookCertDir, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		logExpired(c, o.Log.WithValues("server", "webhooks", "folder", o.WebhookCertDir), time.Now)
	}}}
	if o.WebhookCertDir == "" {
		certificates, err := m.serveCertificates(host)
		if err != nil {
			return err
		}
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = certificates.get })
		m.certificates, certificates.definitions = certificates, m.converted
		certificates.by = o.ConversionWebhook()
	}
	if _, err := m.own.dryRuns(); err != nil {
		return err
	}
	server := webhook.NewServer(options)
	for path, handler := range webhookHandlers(m) {
		server.Register(path, handler)
	}
	if err := m.manager.AddReadyzCheck("webhooks", server.StartedChecker()); err != nil {
		return err
	}
	return m.manager.Add(server)
}

// webhookHandlers returns who answers the requests to each path of the webhooks.
func webhookHandlers(m *Manager) map[string]http.Handler {
	log, resources := m.options.Log, admission.NewResources(m.reviewed, m.reviews())
	// The direct client creates access reviews, which no cache has.
	patches := patchReviews(m.manager.GetRESTMapper(), m.own.caches.Direct)
	return map[string]http.Handler{
		admission.PatchesPath:  admission.NewHandler(patches.Review, log),
		admission.ValidatePath: admission.NewHandler(resources.Validate, log),
		admission.MutatePath:   admission.NewHandler(resources.Mutate, log),
		admission.ConvertPath:  admission.NewConversions(m.converter, m.reviews(), log),
	}
}

// reviews returns how many requests are reviewed at once: with several workers, reconciles always have one.
func (m *Manager) reviews() int {
	if m.options.Workers == nil {
		return 1
	}
	return max(1, m.options.Workers.Size()/2)
}

// reviewed returns the package of a kind for reviews, or nil if none is loaded.
func (m *Manager) reviewed(kind schema.GroupKind) admission.Package {
	c := m.controller(kind)
	if c == nil {
		return nil
	}
	on, err := c.as.dryRuns()
	if err != nil {
		m.options.Log.Error(err, "requests are not reviewed", "kind", kind.String())
		return nil
	}
	out := reviewedPackage{Evaluator: c.program.Load(), reconciler: &reconcile.Reconciler{
		// The inputs of a process that does not lead are not watched.
		Cluster: &cluster.Live{Client: c.as.caches.Direct, Direct: c.as.caches.Direct}, ConfigMap: m.options.ConfigMap,
	}, dryRun: on}
	if m.options.ConversionWebhook() != nil {
		out.versions = out.Meta().Converted()
	}
	return out
}

// converter returns the package of a kind for conversions, or nil if none is loaded.
func (m *Manager) converter(kind schema.GroupKind) admission.Converter {
	if c := m.controller(kind); c != nil {
		return c.program.Load()
	}
	return nil
}

// converted returns the names of the CustomResourceDefinitions whose versions this process converts.
func (m *Manager) converted() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []string
	for kind, c := range m.controllers {
		if about := c.program.Load().Meta(); about.Converts() {
			out = append(out, about.Plural+"."+kind.Group)
		}
	}
	slices.Sort(out)
	return out
}

// ConversionWebhook returns how an API server asks this process to convert versions, or nil if it cannot: then no
// webhook is served, or nobody has said where.
func (o Options) ConversionWebhook() *apiextensionsv1.WebhookClientConfig {
	if o.WebhookAddress == "" {
		return nil
	}
	path := admission.ConvertPath
	if service := o.WebhookCertificates.Service; service.Name != "" {
		return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
			Namespace: service.Namespace, Name: service.Name, Path: &path, Port: new(int32(webhookServicePort)),
		}}
	}
	host, _, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil || host == "" || net.ParseIP(host).IsUnspecified() {
		return nil
	}
	return &apiextensionsv1.WebhookClientConfig{URL: new("https://" + o.WebhookAddress + path)}
}

// webhookServicePort is the port of the Service of webhooks, if there is one.
const webhookServicePort = 443

// A reviewedPackage is the version of a package that reviews requests: the one that reconciles use.
type reviewedPackage struct {
	*evaluate.Evaluator

	reconciler *reconcile.Reconciler
	// dryRun is the cluster on which a plan is made.
	dryRun dryrun.ServerOptions
	// versions are those that resources are converted to, which are none without a webhook.
	versions []string
}

// Converts implements admission.Package.
func (p reviewedPackage) Converts() []string { return p.versions }

// Session implements admission.Package.
func (p reviewedPackage) Session(ctx context.Context, resource *unstructured.Unstructured) (program.Session, error) {
	s, err := p.reconciler.Requested(ctx, resource, p.Evaluator)
	if wrong, ok := errors.AsType[*reconcile.ConfigError](err); ok && wrong.Tenant {
		return s, fault.Faults{{Path: "metadata.annotations[" + reconcile.AnnotationConfig + "]", Message: wrong.Error()}}
	}
	return s, err
}

// Review implements admission.Package.
func (p reviewedPackage) Review(ctx context.Context, s program.Session) (program.Review, error) {
	return p.ReviewContext(ctx, s)
}

// Plan implements admission.Package. It reconciles the resource as a dry run of the API server, with the
// status that the cluster has: an inventory of somebody else would make it read what it names.
func (p reviewedPackage) Plan(ctx context.Context, before, after *unstructured.Unstructured) ([]string, error) {
	after = after.DeepCopy()
	delete(after.Object, "status")
	if before == nil {
		after.SetFinalizers(nil)
	} else {
		live, err := p.reconciler.Cluster.GetLive(ctx, object.RefOf(before))
		if err != nil {
			return nil, err
		}
		if live == nil || live.GetUID() != before.GetUID() || live.GetResourceVersion() != before.GetResourceVersion() {
			return nil, errors.New("the resource has changed meanwhile")
		}
		if status, ok := live.Object["status"]; ok {
			after.Object["status"] = status
		}
	}
	on := p.dryRun
	plan := &planned{boundPackage: boundPackage{p.Evaluator, ctx}}
	on.Evaluates = plan
	step := dryrun.NewServer(on, p.Program).Reconcile(ctx, after)
	return dryrun.Summary(step, plan.last), step.Err
}

// A planned package evaluates as reviews do: with their turns, and before the request ends.
type planned struct {
	boundPackage

	// last is what the last evaluation came to. A dry run applies one component after the other.
	last program.Rollout
}

var _ reconcile.Package = (*planned)(nil)

// Evaluate implements rollout.Evaluator.
func (p *planned) Evaluate(s program.Session) (program.Rollout, error) {
	review, err := p.ReviewContext(p.ctx, s)
	p.last = review.Rollout
	return review.Rollout, err
}

// Locate implements rollout.Locator. A plan names no lines.
func (*planned) Locate(program.Session, string, string, string) fault.Position {
	return fault.Position{}
}

// patchReviews returns what admits Patches by the rights of their users.
func patchReviews(mapper meta.RESTMapper, direct client.Client) admission.Patches {
	return admission.Patches{
		Resource: func(_ context.Context, kind schema.GroupKind) (schema.GroupResource, error) {
			m, err := mapper.RESTMapping(kind)
			if err != nil {
				return schema.GroupResource{}, err
			}
			return m.Resource.GroupResource(), nil
		},
		Allowed: func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: spec}
			err := direct.Create(ctx, review)
			return review.Status.Allowed, err
		},
	}
}
