package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/stored"
)

// outlives errors with a stored.LossError if resources of a package would lose something under the next definition. They are read as
// whoever serves them. The definitions of the engine's own kinds hold themselves back, by their numbers.
func (o *operator) outlives(ctx context.Context, present, next *apiextensionsv1.CustomResourceDefinition) error {
	if _, ofPackage := next.Labels[crd.PackageLabel]; !ofPackage {
		return nil
	}
	config := o.config
	if account, err := object.ParseAccount(next.Annotations[crd.AccountAnnotation]); err == nil {
		config = rest.CopyConfig(o.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: account.User()}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	in := func(of schema.GroupVersionResource, namespace string) stored.Resources {
		return client.Resource(of).Namespace(namespace)
	}
	return o.stored.Check(ctx, stored.Access{In: in, Namespaces: o.flags.options.Namespaces}, present, next)
}

// isLoss reports whether resources hold a definition back.
func isLoss(err error) bool {
	_, is := errors.AsType[*stored.LossError](err)
	return is
}

// isSameLoss reports whether two errors are about the same loss, which has been said then.
func isSameLoss(a, b error) bool {
	one, is := errors.AsType[*stored.LossError](a)
	other, also := errors.AsType[*stored.LossError](b)
	return is && also && *one == *other
}

// reportLoss tells the resource that holds a definition back, by an event, if that is so: who may change it need not see the log.
func (o *operator) reportLoss(ctx context.Context, err error) {
	loss, is := errors.AsType[*stored.LossError](err)
	if !is || loss.Kind == "" {
		return
	}
	client, err := kubernetes.NewForConfig(o.config)
	if err == nil {
		_, err = client.EventsV1().Events(eventNamespace(loss)).Create(ctx, lossEvent(loss), metav1.CreateOptions{})
	}
	if err != nil && ctx.Err() == nil {
		o.log.Info("the resource that holds a definition back is not told", "resource", loss.Resource.String(), "error", err.Error())
	}
}

// eventNamespace is where an event about a resource is.
func eventNamespace(of *stored.LossError) string {
	if of.Resource.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return of.Resource.Namespace
}

// lossEvent returns an event about the resource that holds a definition back. How to install that nevertheless is not for who owns it.
func lossEvent(of *stored.LossError) *eventsv1.Event {
	group := schema.ParseGroupResource(of.Definition).Group
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: of.Resource.Name + ".", Namespace: eventNamespace(of)},
		EventTime:           metav1.NowMicro(),
		ReportingController: cluster.FieldManager,
		ReportingInstance:   cluster.FieldManager,
		Action:              "Install",
		Reason:              string(packages.ReasonCRDTooNarrow),
		Type:                corev1.EventTypeWarning,
		Regarding: corev1.ObjectReference{
			APIVersion: schema.GroupVersion{Group: group, Version: of.Version}.String(), Kind: of.Kind,
			Namespace: of.Resource.Namespace, Name: of.Resource.Name, UID: of.UID,
		},
		Note: fmt.Sprintf("it holds the next definition of its kind back: %s: %s", of.Field, of.Why),
	}
}
