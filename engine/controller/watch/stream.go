package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// streams are what the informers of a cache read from an API server: the same as they would by themselves, with another
// decoder of objects.
type streams struct {
	config *rest.Config
	client *http.Client
	mapper meta.RESTMapper
	// namespace is where, or "" for everywhere.
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	decode    decoder
}

// A decoder decodes an object from JSON or CBOR. It must not keep the bytes after the call.
type decoder func(raw []byte) (*unstructured.Unstructured, error)

// newStreams returns the streams of a cache with some options. They have a namespace, or all of them, and one selector for
// all kinds.
func newStreams(config *rest.Config, namespace string, options cache.Options, decode decoder) *streams {
	return &streams{
		config: dynamic.ConfigFor(config), client: options.HTTPClient, mapper: options.Mapper, namespace: namespace,
		labels: options.DefaultLabelSelector, fields: options.DefaultFieldSelector, decode: decode,
	}
}

// orDefault returns the stream of the kind of an object, or what an informer reads usually if the object has a Go type.
func (s *streams) orDefault(object runtime.Object, usual toolscache.ListerWatcher) toolscache.ListerWatcher {
	if _, is := object.(*unstructured.Unstructured); !is || s == nil {
		return usual
	}
	out, err := s.of(object.GetObjectKind().GroupVersionKind())
	if err != nil {
		return usual // it has the same objects
	}
	return out
}

// of returns the stream of a kind.
func (s *streams) of(kind schema.GroupVersionKind) (toolscache.ListerWatcher, error) {
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(s.config)
	config.GroupVersion, config.APIPath = new(kind.GroupVersion()), "/apis"
	if kind.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(config, s.client)
	if err != nil {
		return nil, fmt.Errorf("creating the client of %s: %w", kind.Kind, err)
	}
	k := &kindStream{streams: s, client: client, mapping: mapping, decode: s.decode}
	if ownership.MayFinish(kind.GroupKind()) {
		k.decode = whole // the transform looks whether it has ended. An item of a list does not say of which kind it is
	}
	return &toolscache.ListWatch{ListWithContextFunc: k.list, WatchFuncWithContext: k.watch}, nil
}

// A kindStream has the objects of a kind.
type kindStream struct {
	*streams

	client  rest.Interface
	mapping *meta.RESTMapping
	decode  decoder
	// onlyJSON says that CBOR was not what it should be, so that no operator depends on how well somebody writes it.
	onlyJSON atomic.Bool
}

// open sends a request.
func (k *kindStream) open(ctx context.Context, o metav1.ListOptions) (io.ReadCloser, error) {
	if k.labels != nil {
		o.LabelSelector = k.labels.String()
	}
	if k.fields != nil {
		o.FieldSelector = k.fields.String()
	}
	request := k.client.Get()
	if k.onlyJSON.Load() {
		request.SetHeader("Accept", runtime.ContentTypeJSON)
	}
	namespaced := k.mapping.Scope.Name() == meta.RESTScopeNameNamespace && k.namespace != ""
	return request.NamespaceIfScoped(k.namespace, namespaced).Resource(k.mapping.Resource.Resource).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).Stream(cluster.ReadsCBOR(ctx))
}

// list lists the objects. It decodes one after the other, so that a list takes no more memory than what the cache keeps.
func (k *kindStream) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	body, err := k.open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	list, err := k.readList(body)
	if err != nil {
		return nil, fmt.Errorf("decoding a list of %s: %w", k.mapping.GroupVersionKind.Kind, plainError(err))
	}
	kind := k.mapping.GroupVersionKind
	for i := range list.Items {
		// Items of the built-in kinds do not say what they are.
		if item := &list.Items[i]; item.GetKind() == "" && item.GetAPIVersion() == "" {
			item.SetGroupVersionKind(kind)
		}
	}
	return list, nil
}

// readList reads a list. An answer without items is not a list, whichever server gave it: with an empty list, a cache would forget all that it
// has.
func (k *kindStream) readList(body io.Reader) (*unstructured.UnstructuredList, error) {
	r, err := openReader(body)
	if err != nil {
		return nil, err
	}
	out, err := r.list(k.decode)
	k.note(r, err)
	return out, err
}

// note notes with which error an answer was read.
func (k *kindStream) note(r *reader, err error) {
	if err != nil && r.isCBOR() && !net.IsProbableEOF(plainError(err)) && !net.IsTimeout(err) && !errors.Is(err, context.Canceled) {
		k.onlyJSON.Store(true)
	}
}

func (r *reader) list(decode decoder) (*unstructured.UnstructuredList, error) {
	out, has := &unstructured.UnstructuredList{Object: map[string]any{}}, false
	err := r.fields(func(name string) (err error) {
		if name != "items" {
			out.Object[name], err = r.any()
			return err
		}
		has, out.Items = true, nil // of two, the last one counts
		if r.shape() == nullShape {
			return r.skip()
		}
		return r.items(func() error {
			raw, err := r.raw()
			if err != nil {
				return err
			}
			u, err := decode(raw)
			if err == nil {
				out.Items = append(out.Items, *u)
			}
			return err
		})
	})
	if err == nil {
		err = r.close()
	}
	if err == nil && (!has || out.GetKind() == "" || out.GetAPIVersion() == "") {
		err = errors.New("it is no list")
	}
	return out, err
}

// watch watches the objects.
func (k *kindStream) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	o.AllowWatchBookmarks = true
	body, err := k.open(ctx, o)
	if net.IsProbableEOF(err) || net.IsTimeout(err) {
		// Who watches goes on where it was, a bit later, after this error only, and lists all objects again after most others.
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("the connection broke: %v", err), 0)
	}
	if err != nil {
		return nil, err
	}
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")
	return watch.NewStreamWatcher(&eventDecoder{body: body, decode: k.decode, note: k.note}, reporter), nil
}

// An eventDecoder reads the events of a watch.
type eventDecoder struct {
	body   io.ReadCloser
	decode decoder
	note   func(*reader, error)
	// reader is nil before the first event.
	reader *reader
	// untyped is the object of an event whose type is not known yet.
	untyped []byte
}

var _ watch.Decoder = (*eventDecoder)(nil)

// Close implements watch.Decoder.
func (d *eventDecoder) Close() { _ = d.body.Close() }

// Decode implements watch.Decoder.
func (d *eventDecoder) Decode() (watch.EventType, runtime.Object, error) {
	if d.reader == nil {
		var err error
		if d.reader, err = openReader(d.body); err != nil {
			return "", nil, err
		}
	}
	of, object, err := d.event()
	if err != nil {
		d.note(d.reader, err)
		return "", nil, plainError(err)
	}
	return of, object, nil
}

// event reads the next event. An API server writes its type before its object in JSON, and in CBOR either first.
func (d *eventDecoder) event() (of watch.EventType, object runtime.Object, err error) {
	if d.untyped = d.untyped[:0]; cap(d.untyped) > maxPackedAtOnce {
		d.untyped = nil
	}
	err = d.reader.fields(func(name string) error {
		switch name {
		case "type":
			v, err := d.reader.string()
			of = watch.EventType(v)
			return err
		case "object":
			raw, err := d.reader.raw()
			if err != nil || of == "" {
				d.untyped = append(d.untyped, raw...)
				return err
			}
			object, err = d.object(of, raw)
			return err
		}
		return d.reader.skip()
	})
	if err == nil && object == nil {
		object, err = d.object(of, d.untyped)
	}
	return of, object, err
}

// object decodes the object of an event.
func (d *eventDecoder) object(of watch.EventType, raw []byte) (runtime.Object, error) {
	if len(raw) == 0 {
		return nil, errors.New("an event without an object")
	}
	switch of {
	case watch.Added, watch.Modified, watch.Deleted:
		return withKind(d.decode(raw))
	case watch.Bookmark:
		return withKind(whole(raw))
	case watch.Error:
		return statusOf(raw)
	}
	return nil, fmt.Errorf("an event of type %s", strings.ToValidUTF8(string(of), "?"))
}

// statusOf decodes the error of an event.
func statusOf(raw []byte) (*metav1.Status, error) {
	v, err := readBytes(raw, (*reader).any)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := &metav1.Status{}
	return out, json.Unmarshal(text, out)
}

// withKind errors for an object of an event that does not say what it is: an informer would pass over the event.
func withKind(u *unstructured.Unstructured, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		return nil, errors.New("an object without a kind")
	}
	return u, nil
}
