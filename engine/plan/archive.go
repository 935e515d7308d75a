package plan

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
)

// A dump is a tar file, compressed by gzip, of two files: dump.json says what it is, and has the length and the
// digest of objects.jsonl, which has one object a line. A folder with the two files is one, too.
const (
	headerFile  = "dump.json"
	objectsFile = "objects.jsonl"
)

// dumpFormat is the only format of dumps so far.
const dumpFormat = 1

// The bounds of a dump that is read or written. A custom resource with a full inventory has a megabyte and a half.
const (
	maxHeader  = 64 << 20
	maxObjects = 1 << 30
	maxLine    = 16 << 20
	maxPadding = 1 << 20
)

// header is the content of dump.json.
type header struct {
	Format  int       `json:"format"`
	Package string    `json:"package"`
	Kind    kind      `json:"kind"`
	Taken   time.Time `json:"taken"`
	// Namespaces are those whose resources were read, separated by commas. The field has the name that it had when there was one:
	// a version that knows only one takes several as one that has another name, and not as all.
	Namespaces string `json:"namespace,omitempty"`
	// Resources and Objects are how many lines there are of each, in this order.
	Resources int    `json:"resources"`
	Objects   int    `json:"objects"`
	Bytes     int64  `json:"bytes"`
	Digest    string `json:"digest"`
	Scopes    []kind `json:"scopes"`
	// Absent are the objects that did not exist, and Lists the selections that were read.
	Absent []name   `json:"absent"`
	Lists  []string `json:"lists"`
}

// kind is a kind, and where its objects live if that was asked; "" is for one that is not served.
type kind struct {
	Group   string        `json:"group,omitempty"`
	Version string        `json:"version,omitempty"`
	Kind    string        `json:"kind"`
	Scope   cluster.Scope `json:"scope,omitempty"`
}

// name is the name of an object.
type name struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Write writes a dump as a compressed tar file. Values of Secrets are replaced; see standIns.
func (d *Dump) Write(w io.Writer) error {
	head, lines, err := d.encode()
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	for _, f := range []struct {
		name string
		data []byte
	}{{headerFile, head}, {objectsFile, lines}} {
		if err := out.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.data)), ModTime: d.Taken, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := out.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

// encode returns the contents of the two files.
func (d *Dump) encode() (head, lines []byte, err error) {
	objects := slices.Collect(maps.Values(d.objects))
	sortObjects(objects)
	replace := newStandIns(slices.Concat(d.resources, objects), d.lists)
	var out bytes.Buffer
	for _, u := range slices.Concat(d.resources, objects) {
		line, err := replace.line(u)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: encoding: %w", cluster.RefOf(u), err)
		}
		if len(line) >= maxLine {
			return nil, nil, fmt.Errorf("%s: it has more than %d bytes, which no dump holds", cluster.RefOf(u), maxLine)
		}
		if out.Len()+len(line) >= maxObjects {
			return nil, nil, fmt.Errorf("the objects have more than %d bytes, which no dump holds: dump one namespace", maxObjects)
		}
		out.Write(append(line, '\n'))
	}
	sum := sha256.Sum256(out.Bytes())
	h := header{
		Format: dumpFormat, Package: d.Package, Kind: kindOf(d.Kind, ""), Taken: d.Taken.UTC(), Namespaces: d.Namespaces.String(),
		Resources: len(d.resources), Objects: len(objects), Bytes: int64(out.Len()), Digest: hex.EncodeToString(sum[:]),
	}
	for selection := range d.lists {
		h.Lists = append(h.Lists, replace.needed.Text(selection))
	}
	slices.Sort(h.Lists)
	for k, scope := range d.scopes {
		h.Scopes = append(h.Scopes, kindOf(k.WithVersion(""), scope))
	}
	slices.SortFunc(h.Scopes, func(a, b kind) int { return strings.Compare(a.Group+"|"+a.Kind, b.Group+"|"+b.Kind) })
	for ref := range d.absent {
		if n := ref.Namespace + "/" + ref.Name; replace.needed.Text(n) != n {
			continue // a package may make a name of a value: a plan takes it as unknown
		}
		h.Absent = append(h.Absent, name{ref.Group, ref.Kind, ref.Namespace, ref.Name})
	}
	slices.SortFunc(h.Absent, func(a, b name) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	if head, err = utiljson.Marshal(h); err == nil && len(head) > maxHeader {
		err = fmt.Errorf("%s has more than %d bytes, which no dump holds: dump one namespace", headerFile, maxHeader)
	}
	return head, out.Bytes(), err
}

// kindOf returns a kind as a header has it.
func kindOf(k schema.GroupVersionKind, scope cluster.Scope) kind {
	return kind{k.Group, k.Version, k.Kind, scope}
}

// ReadDump reads a dump from a file that Write has written, or a folder with its content. It errors if the dump is
// incomplete, has been changed, is of another format, or has anything else in it.
func ReadDump(path string) (*Dump, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		d, err := readFolder(path)
		return d, inDump(path, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	d, err := DecodeDump(file)
	return d, inDump(path, err)
}

// inDump says which dump an error is about.
func inDump(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dump %s: %w", path, err)
}

// DecodeDump is ReadDump for the content of a file.
func DecodeDump(from io.Reader) (*Dump, error) {
	zip, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return nil, fmt.Errorf("it is not a file of operetta dump: %w", err)
	}
	in := tar.NewReader(io.LimitReader(zip, maxHeader+maxObjects+1<<20))
	head, err := nextFile(in, headerFile, maxHeader)
	if err != nil {
		return nil, err
	}
	lines, err := nextFile(in, objectsFile, maxObjects)
	if err != nil {
		return nil, err
	}
	switch extra, err := in.Next(); {
	case err == nil:
		return nil, fmt.Errorf("it has another file, %q", extra.Name)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("it is incomplete: %w", err)
	}
	switch padding, err := io.Copy(io.Discard, io.LimitReader(zip, maxPadding)); { // the checksum is behind the last file
	case err != nil:
		return nil, fmt.Errorf("it is incomplete: %w", err)
	case padding == maxPadding:
		return nil, errors.New("it has something behind its last file")
	}
	return decode(head, lines)
}

// nextFile reads the next file of a tar file, which has to be a regular one of a name.
func nextFile(in *tar.Reader, want string, limit int64) ([]byte, error) {
	h, err := in.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("it is incomplete: there is no %s", want)
	case err != nil:
		return nil, fmt.Errorf("it is incomplete: %w", err)
	case h.Name != want:
		return nil, fmt.Errorf("it has the file %q where %s should be", h.Name, want)
	case h.Typeflag != tar.TypeReg:
		return nil, fmt.Errorf("its %s is no regular file", want)
	case h.Size > limit:
		return nil, fmt.Errorf("its %s has %d bytes, and %d are the limit", want, h.Size, limit)
	}
	return readUpTo(in, want, limit)
}

// readUpTo reads a file up to a limit.
func readUpTo(in io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is incomplete: %s: %w", name, err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("its %s has more than %d bytes", name, limit)
	}
	return data, nil
}

// readFolder reads a dump that was unpacked. It follows no links.
func readFolder(dir string) (*Dump, error) {
	var files [2][]byte
	for i, f := range []struct {
		name  string
		limit int64
	}{{headerFile, maxHeader}, {objectsFile, maxObjects}} {
		path := filepath.Join(dir, f.name)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("it is incomplete: there is no %s", f.name)
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("its %s is no regular file", f.name)
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		files[i], err = readUpTo(file, f.name, f.limit)
		_ = file.Close() // it was only read
		if err != nil {
			return nil, err
		}
	}
	return decode(files[0], files[1])
}

// decode returns the dump of the contents of its two files.
func decode(head, lines []byte) (*Dump, error) {
	var format struct {
		Format int `json:"format"`
	}
	if err := utiljson.Unmarshal(head, &format); err != nil {
		return nil, fmt.Errorf("its %s is no JSON: %w", headerFile, err)
	}
	if format.Format != dumpFormat {
		return nil, fmt.Errorf("it has format %d, and this version of operetta reads format %d: make it anew", format.Format, dumpFormat)
	}
	var h header
	if err := utiljson.Unmarshal(head, &h); err != nil {
		return nil, fmt.Errorf("its %s cannot be read: %w", headerFile, err)
	}
	sum := sha256.Sum256(lines)
	if h.Bytes != int64(len(lines)) || h.Digest != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("its %s is not the one that %s describes: it is incomplete, or was changed", objectsFile, headerFile)
	}
	d := h.dump()
	if h.Namespaces != "" {
		var err error
		if d.Namespaces, err = object.ParseNamespaces(strings.Split(h.Namespaces, ",")); err != nil {
			return nil, fmt.Errorf("its %s: %w", headerFile, err)
		}
	}
	return d, d.fill(h, lines)
}

// dump returns what a header says of a dump.
func (h header) dump() *Dump {
	d := newDump()
	d.Package, d.Taken = h.Package, h.Taken
	d.Kind = schema.GroupVersionKind{Group: h.Kind.Group, Version: h.Kind.Version, Kind: h.Kind.Kind}
	for _, k := range h.Scopes {
		d.scopes[schema.GroupKind{Group: k.Group, Kind: k.Kind}] = k.Scope
	}
	for _, n := range h.Absent {
		ref := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Group: n.Group, Kind: n.Kind}, Namespace: n.Namespace, Name: n.Name}
		d.absent[ref] = true
	}
	for _, l := range h.Lists {
		d.lists[l] = true
	}
	return d
}

// fill adds the objects of the lines.
func (d *Dump) fill(h header, lines []byte) error {
	in := bufio.NewScanner(bytes.NewReader(lines))
	in.Buffer(nil, maxLine)
	seen := map[cluster.Ref]bool{}
	number := 0
	for ; in.Scan(); number++ {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(in.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: it is no object: %w", objectsFile, number+1, err)
		}
		ref := cluster.RefOf(u)
		isResource := number < h.Resources
		switch {
		case !ref.Known():
			return fmt.Errorf("%s:%d: an object has an apiVersion, a kind and a name", objectsFile, number+1)
		case isResource && ref.GroupKind() != d.Kind.GroupKind():
			return fmt.Errorf("%s:%d: %s is not of the kind %s", objectsFile, number+1, ref, d.Kind.GroupKind())
		case isResource && seen[ref.Identity()] || !isResource && d.objects[ref.Identity()] != nil:
			return fmt.Errorf("%s:%d: %s is there twice", objectsFile, number+1, ref)
		}
		if isResource {
			seen[ref.Identity()] = true
			d.resources = append(d.resources, u)
			continue
		}
		d.objects[ref.Identity()] = u
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", objectsFile, number+1, err)
	}
	if number != h.Resources+h.Objects {
		return fmt.Errorf("it has %d objects, and says %d", number, h.Resources+h.Objects)
	}
	return nil
}
