package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

const (
	// maxFile bounds a CUE file, in bytes.
	maxFile = 1 << 20
	// maxModuleFile bounds the declaration of a module: CUE evaluates it to be read.
	maxModuleFile = 16 << 10
	// maxTotal bounds the files of a package together, in bytes, and maxFiles their number.
	maxTotal = 8 << 20
	maxFiles = 1000
	// maxRead bounds the CUE files that are looked at to find those, in bytes: the ones above a
	// package belong to it if they have its name.
	maxRead = 64 << 20
	// maxEntries bounds how many names of a folder are read, CUE or not.
	maxEntries = 10_000
	// maxImports bounds the imports that are followed.
	maxImports = 10_000
)

// A LimitError is the error of a file or folder that is not read, because it is no regular
// file or because there is too much of it.
type LimitError struct {
	// Name is the file or folder, relative to the root of the module.
	Name string
	// Problem says what it is, and what it may be.
	Problem string
}

// Error says what is not read, and why.
func (e *LimitError) Error() string { return e.Name + ": " + e.Problem }

// A disk is the file system below a folder. It opens regular files only, follows links only
// as far as they stay below the folder, and reads no more than the limits: whoever fills the
// folder of a package must not be able to hang or to fill whoever reads it.
type disk struct {
	root *os.Root
	// seen are the files and folders that were looked at, nil for those that are not there.
	seen map[string]fs.FileInfo
}

// openDisk opens a folder. It errors when that is none.
func openDisk(dir string) (*disk, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &disk{root: root, seen: map[string]fs.FileInfo{}}, nil
}

// Open opens a regular file or a folder.
func (d *disk) Open(name string) (fs.File, error) {
	info, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if err := regular(name, info); err != nil {
			return nil, err
		}
	}
	// Opening a pipe that takes the place of the file meanwhile does not wait for a writer.
	f, err := d.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = &LimitError{name, "it was replaced while it was read"}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Stat describes a file or folder, or what a link leads to.
func (d *disk) Stat(name string) (fs.FileInfo, error) {
	info, err := d.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		d.seen[name] = nil
	}
	if link, wrong := d.root.Lstat(name); err != nil && wrong == nil && link.Mode()&fs.ModeSymlink != 0 {
		return nil, &LimitError{name, "it is a link that leads out of the folder of the module, or to nothing"}
	}
	if err != nil {
		return nil, err
	}
	d.seen[name] = info
	return info, nil
}

// ReadFile returns what a regular file holds.
func (d *disk) ReadFile(name string) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = regular(name, info)
	}
	if err == nil && info.Size() > maxFile {
		err = tooLarge(name, maxFile)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // it may grow meanwhile
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, tooLarge(name, maxFile)
	}
	return data, nil
}

// ReadDir returns what a folder holds, sorted by name.
func (d *disk) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.ErrUnsupported}
	}
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxEntries {
		return nil, &LimitError{name, fmt.Sprintf("the folder has more than %d entries", maxEntries)}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// regular errors unless a file is a regular one.
func regular(name string, info fs.FileInfo) error {
	what := "it is no regular file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "it is a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "it is a named pipe"
	case mode&fs.ModeDevice != 0:
		what = "it is a device"
	case mode&fs.ModeSocket != 0:
		what = "it is a socket"
	}
	return &LimitError{name, what + ", and only regular files are read"}
}

func tooLarge(name string, limit int) error {
	return &LimitError{name, fmt.Sprintf("it has more than %d bytes", limit)}
}
