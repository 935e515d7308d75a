package controller

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/certificates"
	"operetta.dev/engine/controller/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WebhookCertificates say where the certificate of the webhooks is kept that the operator makes itself.
type WebhookCertificates struct {
	// Secret has the certificates. It has to exist.
	Secret types.NamespacedName
	// Service is what the API server calls; its zero value is only the address of the webhooks.
	Service types.NamespacedName
	// Configuration is the name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration
	// that are told whom to trust. They need not exist.
	Configuration string
	// Lifetime is how long a certificate is valid; 0 is DefaultCertificateLifetime.
	Lifetime time.Duration
}

// webhookCertificates keeps the certificate of the webhooks in a Secret, which all processes of the operator
// serve. The one that leads replaces it, and tells the API server whom to trust.
type webhookCertificates struct {
	of      WebhookCertificates
	options certificates.Options
	cache   cache.Cache
	// direct writes; reading from the cache may be late, and a conflict then says so.
	direct client.Client
	log    logr.Logger
	// definitions returns the names of the CustomResourceDefinitions whose versions are converted here, and by is
	// how the API server asks for that; nil stands for none.
	definitions func() []string
	by          *apiextensionsv1.WebhookClientConfig
	// served is the certificate that is served, or nil.
	served atomic.Pointer[tls.Certificate]
	// changed has a value after anything has changed.
	changed chan struct{}
	// trusted is what the API server was told to trust last, since a time.
	trusted []byte
	since   time.Time
}

// serveCertificates returns the certificates of the webhooks, which the manager keeps. It errors if they
// cannot be kept anywhere.
func (m *Manager) serveCertificates(host string) (*webhookCertificates, error) {
	of := m.options.WebhookCertificates
	if of.Secret.Name == "" {
		return nil, errors.New("the webhooks have no certificate: name a folder or a Secret")
	}
	if of.Lifetime == 0 {
		of.Lifetime = DefaultCertificateLifetime
	}
	var hosts []string
	if service := of.Service; service.Name != "" {
		name := service.Name + "." + service.Namespace
		hosts = append(hosts, name+".svc", name, name+".svc.cluster.local")
	}
	if host != "" {
		hosts = append(hosts, host)
	}
	if len(hosts) == 0 {
		return nil, errors.New("the webhooks have no name that a certificate could be for: name their Service")
	}
	c := &webhookCertificates{
		of: of, direct: m.own.caches.Direct, log: m.options.Log, changed: make(chan struct{}, 1),
		options: certificates.Options{Hosts: hosts, Lifetime: of.Lifetime, Overlap: min(maxOverlap, of.Lifetime/overlapShare)},
	}
	var err error
	if c.cache, err = cache.New(m.manager.GetConfig(), cache.Options{
		HTTPClient: m.manager.GetHTTPClient(), Scheme: m.manager.GetScheme(), Mapper: m.manager.GetRESTMapper(), ByObject: c.selection(),
	}); err != nil {
		return nil, fmt.Errorf("watching the certificates of the webhooks: %w", err)
	}
	if err := m.manager.AddReadyzCheck("webhook-certificate", c.ready); err != nil {
		return nil, err
	}
	// This cache does not say that it needs no leader election.
	return c, errors.Join(m.manager.Add(watch.EveryProcess(c.cache.Start)), m.manager.Add(watch.EveryProcess(c.watchSecret)), m.addSingleton(manager.RunnableFunc(c.keepUpToDate)))
}

// selection returns the objects that are watched, each by its name, so that rights on others are not needed.
func (c *webhookCertificates) selection() map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	out := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{c.of.Secret.Namespace: {FieldSelector: named(c.of.Secret.Name)}}},
	}
	if c.of.Configuration != "" {
		out[&admissionregistrationv1.ValidatingWebhookConfiguration{}] = cache.ByObject{Field: named(c.of.Configuration)}
		out[&admissionregistrationv1.MutatingWebhookConfiguration{}] = cache.ByObject{Field: named(c.of.Configuration)}
	}
	return out
}

// ready errors while there is no certificate to serve, or only one that nobody accepts.
func (c *webhookCertificates) ready(*http.Request) error {
	served := c.served.Load()
	switch {
	case served == nil:
		return errors.New("the webhooks have no certificate yet")
	case isExpired(served):
		return fmt.Errorf("the certificate of the webhooks has expired at %s; the process that leads replaces it", expiry(served))
	}
	return nil
}

// isExpired reports whether nobody accepts a certificate any more.
func isExpired(c *tls.Certificate) bool { return time.Now().After(c.Leaf.NotAfter) }

// expiry returns until when a certificate is valid, as text.
func expiry(c *tls.Certificate) string { return c.Leaf.NotAfter.UTC().Format(time.RFC3339) }

// get returns the certificate that is served.
func (c *webhookCertificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	out := c.served.Load()
	if out == nil {
		return nil, errors.New("the webhooks have no certificate yet")
	}
	return out, nil
}

// watchSecret serves what the Secret has, until the context ends.
func (c *webhookCertificates) watchSecret(ctx context.Context) error {
	for kind := range c.selection() {
		informer, err := c.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching the certificates of the webhooks: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: c.serveSecret, UpdateFunc: func(_, object any) { c.serveSecret(object) }, DeleteFunc: func(any) { c.wake() },
		}); err != nil {
			return fmt.Errorf("watching the certificates of the webhooks: %w", err)
		}
	}
	<-ctx.Done()
	return nil
}

// serveSecret serves the certificate in a Secret. While the Secret has none, or an expired one, the last one stays in use.
// After an outage, that one may have expired, too: it is served until the leader has replaced it, because a client
// that rejects a certificate reports more than a client that gets none.
func (c *webhookCertificates) serveSecret(object any) {
	defer c.wake()
	secret, is := object.(*corev1.Secret)
	if !is {
		return
	}
	certificate, err := certificates.Serving(secret.Data)
	if err != nil {
		c.log.V(1).Info("no certificate for the webhooks", "secret", c.of.Secret.String(), "reason", err.Error())
		return
	}
	was := c.served.Load()
	if was != nil && bytes.Equal(was.Certificate[0], certificate.Certificate[0]) {
		return
	}
	if isExpired(certificate) {
		c.log.Info("the certificate of the webhooks has expired, and no request to them succeeds with it; the process that leads replaces it",
			"secret", c.of.Secret.String(), "expired", expiry(certificate))
		if was == nil {
			c.served.Store(certificate)
		}
		return
	}
	c.served.Store(certificate)
	c.log.Info("serving webhooks with a new certificate", "secret", c.of.Secret.String(), "until", expiry(certificate))
}

// wake has the process that leads look again. There may be no certificates to look after.
func (c *webhookCertificates) wake() {
	if c != nil {
		wake(c.changed)
	}
}

// keepUpToDate keeps the Secret and the configurations as they have to be, until the context ends.
func (c *webhookCertificates) keepUpToDate(ctx context.Context) error {
	c.awaitRead(ctx)
	for ctx.Err() == nil {
		again, err := c.step(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "the certificates of the webhooks could not be kept up to date, trying again")
			again = certificateRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		case <-c.changed:
		}
	}
	return nil
}

// awaitRead waits until the objects have been read, and for a kind that cannot be read no longer than certificateRead.
func (c *webhookCertificates) awaitRead(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, certificateRead)
	defer cancel()
	c.cache.WaitForCacheSync(limited)
}

// errUnread says that the objects of a kind have not been read. Why is in the log of its watch.
var errUnread = errors.New("it has not been read yet; is the operator allowed to list and watch it?")

// getRead reads an object of the cache, which answers for no kind before it has read its objects.
func (c *webhookCertificates) getRead(ctx context.Context, key client.ObjectKey, into client.Object) error {
	informer, err := c.cache.GetInformer(ctx, into, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if !informer.HasSynced() {
		return errUnread
	}
	return c.cache.Get(ctx, key, into)
}

// step does what is due, and returns when to look again. While the authorities are not written everywhere, the certificate is not
// replaced by the next one; a first one is made all the same.
func (c *webhookCertificates) step(ctx context.Context) (time.Duration, error) {
	secret := &corev1.Secret{}
	if err := c.getRead(ctx, c.of.Secret, secret); err != nil {
		return 0, fmt.Errorf("secret %s: %w", c.of.Secret, err)
	}
	var unwritten error
	if len(secret.Data[certificates.AuthoritiesKey]) > 0 {
		unwritten = c.writeCABundles(ctx, secret.Data[certificates.AuthoritiesKey])
	}
	trusted := time.Since(c.since)
	if unwritten != nil {
		trusted = -1
	}
	next, err := certificates.Next(secret.Data, c.options, trusted, time.Now())
	if c.by != nil {
		next.Again = min(next.Again, definitionCheck) // definitions are not watched
	}
	if err != nil || !next.Changed {
		return next.Again, errors.Join(unwritten, err)
	}
	secret.Data = next.Data
	if err := c.direct.Update(ctx, secret); err != nil && !apierrors.IsConflict(err) {
		return 0, errors.Join(unwritten, fmt.Errorf("secret %s: %w", c.of.Secret, err))
	}
	return next.Again, unwritten // the event of the write comes before that
}

// writeCABundles writes the authorities to trust wherever the API server looks for them, and notes since when they are everywhere. If one
// write fails, the others are made all the same.
func (c *webhookCertificates) writeCABundles(ctx context.Context, authorities []byte) error {
	changed := false
	var failures []error
	if c.of.Configuration != "" {
		for _, configuration := range []client.Object{&admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}} {
			written, err := c.writeCABundle(ctx, configuration, authorities)
			if err != nil {
				failures = append(failures, fmt.Errorf("%T %s: %w", configuration, c.of.Configuration, err))
			}
			changed = changed || written
		}
	}
	if c.by != nil {
		for _, name := range c.definitions() {
			written, err := c.writeConversionCABundle(ctx, name, authorities)
			if err != nil {
				failures = append(failures, fmt.Errorf("CustomResourceDefinition %s: %w", name, err))
			}
			changed = changed || written
		}
	}
	if len(failures) > 0 {
		c.trusted = nil // the time begins when all have them
		return errors.Join(failures...)
	}
	if changed || !bytes.Equal(c.trusted, authorities) {
		c.trusted, c.since = authorities, time.Now()
	}
	return nil
}

// writeCABundle writes authorities to a configuration, and reports whether that was necessary.
func (c *webhookCertificates) writeCABundle(ctx context.Context, configuration client.Object, authorities []byte) (bool, error) {
	err := c.getRead(ctx, types.NamespacedName{Name: c.of.Configuration}, configuration)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	before, _ := configuration.DeepCopyObject().(client.Object)
	changed := false
	for _, webhook := range clientsOf(configuration) {
		if !bytes.Equal(webhook.CABundle, authorities) {
			webhook.CABundle, changed = authorities, true
		}
	}
	if !changed {
		return false, nil
	}
	err = c.direct.Patch(ctx, configuration, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return true, nil // the event of the other write comes
	}
	return true, err
}

// writeConversionCABundle writes authorities to a definition that has this operator convert its versions, and reports whether
// that was necessary. That of somebody else stays as it is.
func (c *webhookCertificates) writeConversionCABundle(ctx context.Context, name string, authorities []byte) (bool, error) {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err := c.direct.Get(ctx, client.ObjectKey{Name: name}, definition)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	had := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, had); err != nil {
		return false, err
	}
	if conversion := had.Spec.Conversion; conversion == nil || conversion.Webhook == nil || !c.isThisOperator(conversion.Webhook.ClientConfig) || bytes.Equal(conversion.Webhook.ClientConfig.CABundle, authorities) {
		return false, nil
	}
	before := definition.DeepCopy()
	if err := unstructured.SetNestedField(definition.Object, base64.StdEncoding.EncodeToString(authorities), "spec", "conversion", "webhook", "clientConfig", "caBundle"); err != nil {
		return false, err
	}
	err = c.direct.Patch(ctx, definition, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		c.wake() // nothing else says that it has changed
		return true, nil
	}
	return true, err
}

// isThisOperator reports whether an API server that calls a webhook calls this operator.
func (c *webhookCertificates) isThisOperator(by *apiextensionsv1.WebhookClientConfig) bool {
	if by == nil {
		return false
	}
	without := by.DeepCopy()
	without.CABundle = nil
	return reflect.DeepEqual(without, c.by)
}

// clientsOf returns how the webhooks of a configuration are called.
func clientsOf(configuration client.Object) []*admissionregistrationv1.WebhookClientConfig {
	var out []*admissionregistrationv1.WebhookClientConfig
	switch of := configuration.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range of.Webhooks {
			out = append(out, &of.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range of.Webhooks {
			out = append(out, &of.Webhooks[i].ClientConfig)
		}
	}
	return out
}
