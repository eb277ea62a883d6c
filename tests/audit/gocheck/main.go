// gocheck checks a log directory and receipts with golang.org/x/mod/sumdb alone: signed note, tiles, every entry,
// inclusion, consistency. It shares no code with Ingot.
//
//	gocheck LOGDIR VKEY_FILE OLD_CHECKPOINT_FILE SPLIT_DIR...
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gocheck:", err)
		os.Exit(1)
	}
}

func read(path string) []byte {
	b, err := os.ReadFile(path)
	must(err)
	return b
}

// checkpoint opens a signed note and parses the three lines of C2SP tlog-checkpoint.
func checkpoint(text []byte, v note.Verifier) tlog.Tree {
	n, err := note.Open(text, note.VerifierList(v))
	must(err)
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != v.Name() {
		must(fmt.Errorf("checkpoint text %q", n.Text))
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err)
	hash, err := tlog.ParseHash(lines[2])
	must(err)
	return tlog.Tree{N: size, Hash: hash}
}

// tilePath is the C2SP name of a tile; package tlog has the height in front of the level.
func tilePath(level string, n int64, width int) string {
	p := fmt.Sprintf("%03d", n%1000)
	for n >= 1000 {
		n /= 1000
		p = fmt.Sprintf("x%03d/%s", n%1000, p)
	}
	if width < 256 {
		p += fmt.Sprintf(".p/%d", width)
	}
	return filepath.Join("tile", level, p)
}

type tiles struct{ dir string }

func (t tiles) Height() int                            { return 8 }
func (t tiles) SaveTiles(ts []tlog.Tile, data [][]byte) {}
func (t tiles) ReadTiles(ts []tlog.Tile) ([][]byte, error) {
	var out [][]byte
	for _, tile := range ts {
		path := tilePath(strconv.Itoa(tile.L), tile.N, tile.W)
		b, err := os.ReadFile(filepath.Join(t.dir, path))
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// entries reads every entry bundle of a tree of this size.
func entries(dir string, size int64) [][]byte {
	var out [][]byte
	for n := int64(0); n*256 < size; n++ {
		width := 256
		if size-n*256 < 256 {
			width = int(size - n*256)
		}
		b := read(filepath.Join(dir, tilePath("entries", n, width)))
		for len(b) > 0 {
			l := int(binary.BigEndian.Uint16(b))
			out = append(out, b[2:2+l])
			b = b[2+l:]
		}
	}
	return out
}

// proof parses a C2SP tlog-proof and checks the leaf against it.
func proof(dir, name string, v note.Verifier) {
	leaf := read(filepath.Join(dir, name+".leaf"))
	text := read(filepath.Join(dir, name+".tlog-proof"))
	head, note, found := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !found || lines[0] != "c2sp.org/tlog-proof@v1" || !strings.HasPrefix(lines[1], "index ") {
		must(fmt.Errorf("%s/%s.tlog-proof: not a tlog-proof", dir, name))
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[1], "index "), 10, 64)
	must(err)
	var p tlog.RecordProof
	for _, l := range lines[2:] {
		h, err := tlog.ParseHash(l)
		must(err)
		p = append(p, h)
	}
	tree := checkpoint(note, v)
	must(tlog.CheckRecord(p, tree.N, tree.Hash, index, tlog.RecordHash(leaf)))
	bad := append([]byte{}, leaf...)
	bad[len(bad)/2] ^= 1
	if tlog.CheckRecord(p, tree.N, tree.Hash, index, tlog.RecordHash(bad)) == nil {
		must(fmt.Errorf("a changed leaf passes"))
	}
}

func main() {
	if len(os.Args) < 4 {
		must(fmt.Errorf("usage: gocheck LOGDIR VKEY OLD_CHECKPOINT SPLIT_DIR..."))
	}
	dir := os.Args[1]
	v, err := note.NewVerifier(strings.TrimSpace(string(read(os.Args[2]))))
	must(err)
	tree := checkpoint(read(filepath.Join(dir, "checkpoint")), v)
	old := checkpoint(read(os.Args[3]), v)
	reader := tlog.TileHashReader(tree, tiles{dir})

	all := entries(dir, tree.N)
	if int64(len(all)) != tree.N {
		must(fmt.Errorf("%d entries, the checkpoint says %d", len(all), tree.N))
	}
	for i, e := range all {
		hashes, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(i))})
		must(err)
		if hashes[0] != tlog.RecordHash(e) {
			must(fmt.Errorf("entry %d is not the leaf of the tree", i))
		}
		if i%37 == 0 {
			p, err := tlog.ProveRecord(tree.N, int64(i), reader)
			must(err)
			must(tlog.CheckRecord(p, tree.N, tree.Hash, int64(i), hashes[0]))
		}
	}
	p, err := tlog.ProveTree(tree.N, old.N, reader)
	must(err)
	must(tlog.CheckTree(p, tree.N, tree.Hash, old.N, old.Hash))
	for _, split := range os.Args[4:] {
		for _, name := range []string{"load", "admit", "done"} {
			proof(split, name, v)
		}
	}
	fmt.Printf("gocheck: %d entries, %s, extends %d, %d receipts\n", tree.N,
		base64.StdEncoding.EncodeToString(tree.Hash[:]), old.N, len(os.Args[4:]))
}
