"""The letters of a screen by row and column. A wide letter has its right half as an empty cell."""

Row = list[str]


class Grid:
    """Rows are as long as what was written to them: what lies beyond is blank."""

    def __init__(self, rows: int) -> None:
        self.rows: list[Row] = [[] for _ in range(rows)]

    def line(self, y: int) -> str:
        return "".join(self.rows[y]).rstrip()

    def place(self, y: int, x: int, cells: Row) -> None:
        row = self.rows[y]
        end = x + len(cells)
        row.extend(" " * (x - len(row)))
        if 0 < x < len(row) and row[x] == "":
            row[x - 1] = " "  # what is left of a wide letter is not a letter
        if end < len(row) and row[end] == "":
            row[end] = " "
        row[x:end] = cells

    def join(self, y: int, x: int, mark: str) -> None:
        """Put an accent on the letter before this place."""
        row = self.rows[y]
        for at in range(min(x, len(row)) - 1, -1, -1):
            if row[at]:
                row[at] += mark
                return

    def erase(self, y: int, start: int = 0, end: int | None = None) -> None:
        row = self.rows[y]
        if end is None or end >= len(row):
            del row[start:]
        elif start < end:
            self.place(y, start, [" "] * (end - start))

    def insert(self, y: int, x: int, count: int) -> None:
        row = self.rows[y]
        if x < len(row):
            row[x:x] = [" "] * count

    def delete(self, y: int, x: int, count: int) -> None:
        del self.rows[y][x : x + count]

    def shift(self, top: int, bottom: int, count: int) -> None:
        """Move the rows from `top` to `bottom` up by `count`, or down when it is negative; what leaves is lost."""
        region = self.rows[top : bottom + 1]
        size = len(region)
        count = max(-size, min(count, size))
        blank: list[Row] = [[] for _ in range(abs(count))]
        self.rows[top : bottom + 1] = region[count:] + blank if count >= 0 else blank + region[: size + count]
