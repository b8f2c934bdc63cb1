"""Converters: what comes first is read, what is named as the result is written."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import HERE, names, texts, written
from remuda.guard.commands.rows import operands, table
from remuda.guard.model import AnyEffect, Read, Unknown

ROWS = """\
pandoc => r*
    -o|--output:w -f: -t: -c: -H:r -A:r -B:r -V: -M: -F:! --filter:! -L:! --lua-filter:! --pdf-engine:! -s -N
    --from: --to: --read: --write: --template:r --css: --metadata-file:r --extract-media:c --log:w
    --standalone --toc --wrap: --columns: --citeproc --bibliography:r --resource-path: --reference-doc:r -*
    --*
dot neato fdp sfdp twopi circo => r*
    -o:w -T: -K: -G: -N: -E: -l: -s: -O! -c! -v -V -q
pdftotext pdftohtml pdftoppm => r w
    -f: -l: -r: -x: -y: -W: -H: -enc: -* --*
qpdf => r w
    --pages! --split-pages! --replace-input! -* --*
asciidoctor rst2html rst2html5 markdown cmark mmark => r w
    -o:w --out-file:w -D:c --destination-dir:c -r:! --require:! -b: -a: -d: -* --*
plantuml mmdc d2 => r w
    -i:r -o:w --input:r --output:w -t: -b: -* --*
protoc => r*
    -I: --proto_path: --plugin:! --descriptor_set_out:w --python_out:c --go_out:c --java_out:c --cpp_out:c
    --js_out:c --ts_out:c --grpc_out:c --ruby_out:c --php_out:c --csharp_out:c --rust_out:c --kotlin_out:c
exiftool => r*
    -overwrite_original! -delete_original! -all=! -o:w -w! -* --*
optipng pngquant jpegoptim svgo => e*
    -o: -d:c --dir:c --ext: --output:w -* --*
"""
FFMPEG_FLAGS = names(
    "-y -n -nostdin -hide_banner -an -vn -sn -dn -nostats -stats -shortest -version -h -formats -codecs"
)


def convert(call: Call) -> Iterator[AnyEffect]:
    """ImageMagick: the last operand is the result."""
    files = [word for word in call.arguments if (word.text or "x")[0] not in "-+(" and word.text != ")"]
    if call.name in {"mogrify"}:
        yield from operands(call, "e*", files[-1:])
        return
    for word in files:
        if any(
            value.startswith(("msl:", "|", "ephemeral:", "https:", "http:", "@")) for value in word.values
        ):
            yield Unknown(why=f"{call.name} is given {word.text or 'something'} for a picture")
    yield from (Read(path=word) for word in files[:-1])
    if len(files) > 1:
        yield from written(files[-1], "truncate")


def ffmpeg(call: Call) -> Iterator[AnyEffect]:
    """``ffmpeg``: inputs behind ``-i``, the rest are results."""
    words, at = list(call.arguments), 0
    while at < len(words):
        text = words[at].text or ""
        if text == "-i":
            yield from (Read(path=word) for word in words[at + 1 : at + 2])
            at += 1
        elif text[:1] == "-" and text not in FFMPEG_FLAGS and len(text) > 1:
            at += 1
        elif text not in FFMPEG_FLAGS:
            yield from written(words[at], "truncate")
        at += 1


def office(call: Call) -> Iterator[AnyEffect]:
    """LibreOffice: converts into a folder when told so."""
    words = texts(call.arguments)
    if "--convert-to" not in words:
        yield Unknown(why=f"{call.name} opens a window")
        return
    folder = next((call.arguments[at + 1] for at, text in enumerate(words[:-1]) if text == "--outdir"), HERE)
    yield from written(folder, "create")


def chooser(call: Call) -> Iterator[AnyEffect]:
    """``fzf`` and its kin: may run commands for what is chosen."""
    if any(
        text.startswith(("--preview", "--bind", "--listen", "--become", "--with-shell"))
        for text in texts(call.arguments)
    ):
        yield Unknown(why=f"{call.name} runs a command for what is chosen")


TABLE: Table = {
    **table(ROWS),
    **dict.fromkeys(("convert", "magick", "mogrify", "composite", "montage"), convert),
    "ffmpeg": ffmpeg,
    **dict.fromkeys(("soffice", "libreoffice"), office),
    **dict.fromkeys(("fzf", "sk", "peco", "gum"), chooser),
}
