// What every page loads: live updates, the palette, shortcuts, the selection of rows, and copying of commands.
// Pages work without it. Nothing here makes HTML from text.
import { startLive } from "./live.js";
import { startKeys } from "./keys.js";
import { startRows } from "./rows.js";
import { startCopy } from "./copy.js";
import { sendZone } from "./zone.js";

sendZone();
startLive();
startKeys();
startRows();
startCopy();
