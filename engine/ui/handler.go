package ui

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/object"
)

//go:embed files
var files embed.FS

// Options say what is served, and to whom.
type Options struct {
	Source Source
	// Hosts are the values of the header Host that are answered, such as 127.0.0.1:8080.
	Hosts []string
	// Cluster is what the pages call the cluster.
	Cluster string
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// A handler serves the pages.
type handler struct {
	Options

	read  *reader
	pages *template.Template
}

// New returns what serves the pages.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &handler{Options: o, read: newReader(o.Source, o.Now)}
	h.pages = template.Must(template.New("").Funcs(template.FuncMap{"since": h.since, "path": pathOf}).ParseFS(files, "files/*.html"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.list)
	mux.HandleFunc("GET /resource/{kind}/{namespace}/{name}", h.resource)
	mux.HandleFunc("GET /picture/{kind}/{namespace}/{name}", h.picture)
	mux.HandleFunc("GET /files/{name}", h.file)
	return h.guarded(mux)
}

// policy lets a page load nothing but what this process serves, and run no script but that of a file.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guarded answers only requests that name this host, and only those that read.
func (h *handler) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		switch {
		case !slices.Contains(h.Hosts, r.Host):
			http.Error(w, "this page is served as "+h.Hosts[0]+" only", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "this page can only be read", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// listPage is the page with all resources.
type listPage struct {
	Cluster   string
	Resources []explain.Resource
	NotReady  int
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	all, err := h.read.list(r.Context())
	if err != nil {
		h.fail(w, err)
		return
	}
	page := listPage{Cluster: h.Cluster, Resources: all}
	for _, one := range all {
		if one.Health != explain.Ready {
			page.NotReady++
		}
	}
	h.page(w, "list.html", page)
}

// resourcePage is the page of one resource.
type resourcePage struct {
	Cluster  string
	Resource explain.Resource
	Tree     template.HTML
}

func (h *handler) resource(w http.ResponseWriter, r *http.Request) {
	one, err := h.read.explain(r.Context(), refOf(r))
	if err != nil {
		h.fail(w, err)
		return
	}
	h.page(w, "resource.html", resourcePage{h.Cluster, one, h.tree(one)})
}

func (h *handler) picture(w http.ResponseWriter, r *http.Request) {
	one, err := h.read.explain(r.Context(), refOf(r))
	if err != nil {
		h.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(one.Picture(nil).SVG()) //nolint:gosec // the drawing escapes its texts; who has gone away needs no answer
}

// file serves the style sheet and the script.
func (h *handler) file(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	types := map[string]string{"style.css": "text/css; charset=utf-8", "refresh.js": "text/javascript; charset=utf-8"}
	data, err := files.ReadFile("files/" + name)
	if err != nil || types[name] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[name])
	_, _ = w.Write(data) //nolint:gosec // it is one of two files; who has gone away needs no answer
}

// page writes a page as a whole, or an error.
func (h *handler) page(w http.ResponseWriter, name string, of any) {
	var b bytes.Buffer
	if err := h.pages.ExecuteTemplate(&b, name, of); err != nil {
		h.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // who has gone away needs no answer
}

// failurePage is the page that says why there is nothing to see.
type failurePage struct{ Cluster, Message string }

// fail writes why something cannot be shown.
func (h *handler) fail(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest {
		code = int(status.Status().Code)
	}
	var b bytes.Buffer
	if broken := h.pages.ExecuteTemplate(&b, "failure.html", failurePage{h.Cluster, err.Error()}); broken != nil {
		http.Error(w, err.Error(), code)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // who has gone away needs no answer
}

// noNamespace stands for the namespace of a cluster-scoped resource in a path. No namespace has such a name.
const noNamespace = "_"

// pathOf returns the path of a resource below a part of the pages.
func pathOf(part string, one explain.Resource) string {
	kind := schema.FromAPIVersionAndKind(one.APIVersion, one.Kind)
	return "/" + part + "/" + url.PathEscape(kind.Kind+"."+kind.Version+"."+kind.Group) + "/" + url.PathEscape(cmp.Or(one.Namespace, noNamespace)) + "/" + url.PathEscape(one.Name)
}

// refOf returns the resource that a path names.
func refOf(r *http.Request) object.Ref {
	kind, _ := schema.ParseKindArg(r.PathValue("kind"))
	ref := object.Ref{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if kind != nil {
		ref.GroupVersionKind = *kind
	}
	if ref.Namespace == noNamespace {
		ref.Namespace = ""
	}
	return ref
}

// since returns how long a resource is as it is.
func (h *handler) since(one explain.Resource) string {
	if one.Since().IsZero() {
		return ""
	}
	return duration.HumanDuration(h.Now().Sub(one.Since()))
}

// The tree is coloured by characters for private use, which become spans. A text that has one of them can only open or
// close a span of these classes.
const (
	good, warn, bad, dim, bold, spanEnd = "\uE001", "\uE002", "\uE003", "\uE004", "\uE005", "\uE000"
)

// spans are the elements that the characters become.
var spans = strings.NewReplacer(
	good, `<span class="good">`, warn, `<span class="warn">`, bad, `<span class="bad">`, dim, `<span class="dim">`, bold, `<span class="bold">`, spanEnd, "</span>",
)

// tree returns the tree of a resource as HTML.
func (h *handler) tree(one explain.Resource) template.HTML {
	in := func(colour string) func(string) string {
		return func(s string) string { return colour + s + spanEnd }
	}
	text := one.Tree(explain.Palette{Good: in(good), Warn: in(warn), Bad: in(bad), Dim: in(dim), Bold: in(bold)}, h.Now())
	return template.HTML(spans.Replace(template.HTMLEscapeString(text))) //nolint:gosec // the text is escaped; the spans are fixed
}
