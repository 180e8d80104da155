// Reads a visitor's own files in the page: GPX, GeoJSON, and the exports of a Timeline. Fixes are { lat, lon, time } in seconds.

export const dayFiles = (() => {
  const seconds = (text) => {
    const number = Number(text);
    if (text !== "" && text !== null && Number.isFinite(number)) return number > 1e11 ? number / 1000 : number;
    return Date.parse(text) / 1000;
  };
  const fix = (lat, lon, time) => ({ lat: Number(lat), lon: Number(lon), time });
  const e7 = (place, time) =>
    fix((place.latitudeE7 ?? place.latE7) / 1e7, (place.longitudeE7 ?? place.lngE7) / 1e7, time);

  // "60.17°, 24.94°" and "geo:60.17,24.94"
  function written(text, time) {
    const found = /(-?\d+(?:\.\d+)?)\D*?,\s*(-?\d+(?:\.\d+)?)/.exec(String(text ?? "").replace(/^geo:/, ""));
    return found ? [fix(found[1], found[2], time)] : [];
  }

  // By pattern: a browser's own XML parser answers a broken file with a styled page, which the security policy forbids.
  function gpx(text) {
    const points = text
      .replace(/<!--[\s\S]*?-->/g, "")
      .matchAll(/<(?:\w+:)?(trkpt|rtept|wpt)\b([^>]*?)(?:\/>|>([\s\S]*?)<\/(?:\w+:)?\1>)/g);
    const attribute = (inside, name) => new RegExp(`\\b${name}\\s*=\\s*["']([^"']+)["']`).exec(inside)?.[1] ?? NaN;
    return Array.from(points, ([, , inside, children]) =>
      fix(
        attribute(inside, "lat"),
        attribute(inside, "lon"),
        seconds(/<(?:\w+:)?time>\s*([^<]*?)\s*</.exec(children ?? "")?.[1] ?? ""),
      ),
    );
  }

  function geojson(data) {
    const features =
      data.type === "FeatureCollection"
        ? data.features
        : data.type === "Feature"
          ? [data]
          : [{ geometry: data, properties: {} }];
    return features.flatMap(({ geometry, properties }) => {
      const given = properties ?? {},
        one = given.time ?? given.timestamp ?? given.datetime ?? given.date;
      if (geometry?.type === "Point")
        return [fix(geometry.coordinates[1], geometry.coordinates[0], seconds(one ?? ""))];
      const times = given.coordTimes ?? given.times ?? given.coordinateProperties?.times ?? [];
      const lines =
        {
          LineString: [geometry?.coordinates],
          MultiLineString: geometry?.coordinates,
          MultiPoint: [geometry?.coordinates],
        }[geometry?.type] ?? [];
      const nested = Array.isArray(times[0]) ? times : [times];
      return lines.flatMap((line, i) => line.map(([lon, lat], j) => fix(lat, lon, seconds(nested[i]?.[j] ?? ""))));
    });
  }

  // A stay is two fixes: when it began and when it ended.
  const stay = (place, from, to) => [...written(place, seconds(from)), ...written(place, seconds(to))];
  const latLng = (place) => place?.latLng ?? place;

  function segment(part) {
    const { startTime: from, endTime: to } = part,
      begin = seconds(from ?? "");
    const candidate = part.visit?.topCandidate?.placeLocation;
    const path = (part.timelinePath ?? []).flatMap(({ point, time, durationMinutesOffsetFromStartTime: after }) =>
      written(point, time === undefined ? begin + 60 * Number(after) : seconds(time)),
    );
    const ways = part.activity
      ? [...written(latLng(part.activity.start), begin), ...written(latLng(part.activity.end), seconds(to ?? ""))]
      : [];
    return [...stay(latLng(candidate), from ?? "", to ?? ""), ...path, ...ways];
  }

  function timelineObject({ placeVisit, activitySegment }) {
    const span = (placeVisit ?? activitySegment)?.duration ?? {},
      begin = seconds(span.startTimestamp ?? span.startTimestampMs ?? ""),
      end = seconds(span.endTimestamp ?? span.endTimestampMs ?? "");
    if (placeVisit) return [e7(placeVisit.location ?? {}, begin), e7(placeVisit.location ?? {}, end)];
    const raw = (activitySegment?.simplifiedRawPath?.points ?? []).map((point) =>
      e7(point, seconds(point.timestamp ?? point.timestampMs ?? "")),
    );
    return activitySegment
      ? [e7(activitySegment.startLocation ?? {}, begin), ...raw, e7(activitySegment.endLocation ?? {}, end)]
      : [];
  }

  function json(text) {
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      throw new Error("This file is neither GPX nor JSON.");
    }
    try {
      return fixesOf(data);
    } catch (error) {
      if (error instanceof TypeError)
        throw new Error("This file is damaged: something is missing where a place or a time should be.");
      throw error;
    }
  }

  function fixesOf(data) {
    if (Array.isArray(data)) return data.flatMap(segment);
    if (data?.semanticSegments) return data.semanticSegments.flatMap(segment);
    if (data?.timelineObjects) return data.timelineObjects.flatMap(timelineObject);
    if (Array.isArray(data?.locations))
      return data.locations.map((place) => e7(place, seconds(place.timestamp ?? place.timestampMs ?? "")));
    if (data?.type) return geojson(data);
    throw new Error("This JSON is neither GeoJSON nor a Timeline export.");
  }

  // Fixes in order of time. What is wrong is said without any coordinate.
  function parse(text) {
    const all = /^\s*</.test(text.replace(/^\uFEFF/, "")) ? gpx(text) : json(text.replace(/^\uFEFF/, ""));
    const placed = all.filter(({ lat, lon }) => Math.abs(lat) <= 90 && Math.abs(lon) <= 180);
    if (!placed.length) throw new Error("This file has no places.");
    const timed = placed.filter(({ time }) => Number.isFinite(time)).sort((a, b) => a.time - b.time);
    if (timed.length < 2)
      throw new Error(
        `${timed.length ? "Only one place of this file has a time" : "The places of this file have no times"}: home cannot be found.`,
      );
    return timed;
  }
  return { parse };
})();
